{{/* The image of that name, by digest. */}}
{{- define "gitea.image" -}}
{{- $ref := required "images.gitea is needed: a reference by digest" .Values.images.gitea -}}
{{- if not (regexMatch "^[^@]+@sha256:[0-9a-f]{64}$" $ref) -}}
{{- fail (printf "images.gitea: %s is not a reference by digest" $ref) -}}
{{- end -}}
{{- $ref -}}
{{- end -}}

{{/* What selects the Pod. */}}
{{- define "gitea.selector" -}}
app.kubernetes.io/name: gitea
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gitea.labels" -}}
{{ include "gitea.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: slipway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The profile of the scale that was asked for. */}}
{{- define "gitea.profile" -}}
{{- toYaml (required (printf "scale: there is no profile %s" .Values.scale) (get .Values.profiles .Values.scale)) -}}
{{- end -}}

{{/* What containers may do: nothing but run. */}}
{{- define "gitea.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
