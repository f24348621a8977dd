{{/* The image of that name, by digest. */}}
{{- define "toolbox.image" -}}
{{- $ref := required "images.busybox is needed: a reference by digest" .Values.images.busybox -}}
{{- if not (regexMatch "^[^@]+@sha256:[0-9a-f]{64}$" $ref) -}}
{{- fail (printf "images.busybox: %s is not a reference by digest" $ref) -}}
{{- end -}}
{{- $ref -}}
{{- end -}}

{{/* What selects the Pods. */}}
{{- define "toolbox.selector" -}}
app.kubernetes.io/name: toolbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolbox.labels" -}}
{{ include "toolbox.selector" . }}
app.kubernetes.io/part-of: slipway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* What containers may do: nothing but run. */}}
{{- define "toolbox.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
