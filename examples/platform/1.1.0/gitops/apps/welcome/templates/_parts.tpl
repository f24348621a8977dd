{{/* The image of that name, by digest. */}}
{{- define "welcome.image" -}}
{{- $ref := required "images.busybox is needed: a reference by digest" .Values.images.busybox -}}
{{- if not (regexMatch "^[^@]+@sha256:[0-9a-f]{64}$" $ref) -}}
{{- fail (printf "images.busybox: %s is not a reference by digest" $ref) -}}
{{- end -}}
{{- $ref -}}
{{- end -}}

{{/* What selects the Pods. */}}
{{- define "welcome.selector" -}}
app.kubernetes.io/name: welcome
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "welcome.labels" -}}
{{ include "welcome.selector" . }}
app.kubernetes.io/part-of: slipway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* What containers may do: nothing but run. */}}
{{- define "welcome.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
