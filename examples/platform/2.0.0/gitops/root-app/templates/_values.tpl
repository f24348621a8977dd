{{/*
The values of an app's chart. Those of the user come last: they win.
*/}}
{{- define "values" -}}
{{- $values := dict "deployment" .all.deployment "domain" .all.domain "platform" .all.platform "scale" .all.scale -}}
{{- with .all.storageClass }}{{ $_ := set $values "storageClass" . }}{{ end -}}
{{- $name := .name -}}
{{- $all := .all -}}
{{- with .component.images -}}
{{- $images := dict -}}
{{- range . -}}
{{- $_ := set $images . (required (printf "images.%s is needed by %s: a reference by digest" . $name) (get $all.images .)) -}}
{{- end -}}
{{- $_ := set $values "images" $images -}}
{{- end -}}
{{- mergeOverwrite $values (.component.values | default dict) | toYaml -}}
{{- end -}}
