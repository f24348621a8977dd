{{/* The image of that name, by digest. */}}
{{- define "database.image" -}}
{{- $ref := required "images.postgresql is needed: a reference by digest" .Values.images.postgresql -}}
{{- if not (regexMatch "^[^@]+@sha256:[0-9a-f]{64}$" $ref) -}}
{{- fail (printf "images.postgresql: %s is not a reference by digest" $ref) -}}
{{- end -}}
{{- $ref -}}
{{- end -}}

{{/* What selects the Pods. */}}
{{- define "database.selector" -}}
app.kubernetes.io/name: database
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "database.labels" -}}
{{ include "database.selector" . }}
app.kubernetes.io/part-of: slipway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* What containers may do: nothing but run. */}}
{{- define "database.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
