{{/* An image that no registry and no bundle has. */}}
{{- define "guestbook.image" -}}
slipway.local/no-such-image@sha256:0000000000000000000000000000000000000000000000000000000000000000
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
