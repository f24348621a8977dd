{{- define "labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: argocd
{{- end }}

{{- define "pod" -}}
automountServiceAccountToken: {{ .token }}
enableServiceLinks: false
terminationGracePeriodSeconds: 10
securityContext:
  runAsNonRoot: true
  runAsUser: 999
  runAsGroup: 999
  fsGroup: 999
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "container" -}}
imagePullPolicy: IfNotPresent
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "redis" -}}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: argocd-redis, key: auth}}
{{- end }}

{{/* What programs that read repositories trust. */}}
{{- define "trust-mounts" -}}
- {name: ssh-known-hosts, mountPath: /app/config/ssh}
- {name: tls-certs, mountPath: /app/config/tls}
- {name: gpg-keys, mountPath: /app/config/gpg/source}
- {name: gpg-keyring, mountPath: /app/config/gpg/keys}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "trust-volumes" -}}
- {name: ssh-known-hosts, configMap: {name: argocd-ssh-known-hosts-cm}}
- {name: tls-certs, configMap: {name: argocd-tls-certs-cm}}
- {name: gpg-keys, configMap: {name: argocd-gpg-keys-cm}}
- {name: gpg-keyring, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- end }}
