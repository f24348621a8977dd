{{/* The image of that name, by digest. */}}
{{- define "guestbook.image" -}}
{{- $ref := required "images.guestbook is needed: a reference by digest" .Values.images.guestbook -}}
{{- if not (regexMatch "^[^@]+@sha256:[0-9a-f]{64}$" $ref) -}}
{{- fail (printf "images.guestbook: %s is not a reference by digest" $ref) -}}
{{- end -}}
{{- $ref -}}
{{- end -}}

{{/* What selects the Pods. */}}
{{- define "guestbook.selector" -}}
app.kubernetes.io/name: guestbook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "guestbook.labels" -}}
{{ include "guestbook.selector" . }}
app.kubernetes.io/part-of: slipway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* What containers may do: nothing but run. */}}
{{- define "guestbook.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
