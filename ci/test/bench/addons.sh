# The second half of install.sh for the platform of addons: Argo CD and the External Secrets
# Operator, which Argo CD then owns, and the ApplicationSets that bring everything else. The
# tree is in the folder gitops of a private repository, GIT_URL, which this only reads.
# shellcheck shell=sh disable=SC2154

: "${GIT_URL:?the repository of the GitOps tree}"
cluster=https://kubernetes.default.svc

say namespaces
namespaces argocd external-secrets store cert-manager traefik load-balancer dex portal argo acme

say secrets
echo "auth: \"$(password)\"" | keep argocd argocd-redis
echo "server.secretkey: \"$(password)\"" | keep argocd argocd-secret "app.kubernetes.io/name: argocd-secret, app.kubernetes.io/part-of: argocd"
echo "user1: \"$(password)\", user2: \"$(password)\"" | keep dex users
echo "key: \"$(token 64)\"" | keep portal session

say configuration
apply -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: outgoing-proxy, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data: {HTTP_PROXY: "", HTTPS_PROXY: "", NO_PROXY: ""}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-ssh-known-hosts-cm, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data: {ssh_known_hosts: ""}
END

say certificates
certificate traefik tls-imported "$domain" "*.$domain"
certificate dex dex-tls dex.dex.svc
certificate acme acme-tls pebble.acme.svc

say repository
git_token=$(cat "$git_files/token")
git_address=${GIT_URL#https://}
git_address=${git_address%%/*}
printf 'https://argocd:%s@%s\n' "$git_token" "$git_address" >"$tmp/credentials"
revision=$(GIT_SSL_CAINFO="$git_files/ca.crt" git -c "credential.helper=store --file $tmp/credentials" -c http.proxy= ls-remote "$GIT_URL" refs/heads/main | cut -f 1)
[ -n "$revision" ] || die "the repository has no branch main"
apply -f - <<END
apiVersion: v1
kind: Secret
metadata: {name: repository-platform, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT, argocd.argoproj.io/secret-type: repository}}
stringData: {type: git, url: "$GIT_URL", username: argocd, password: "$git_token"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-tls-certs-cm, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT, app.kubernetes.io/part-of: argocd}}
data:
  ${git_address%:*}: |
$(sed 's/^/    /' "$git_files/ca.crt")
END

# ------------------------------------------------------------------ orchestrator

# definitions NAME BUNDLE [PATCHES]: those that come with the bundle, patched by what is in a
# folder of the release.
definitions() {
	say "$1"
	if [ $# -eq 2 ]; then
		apply -f "$manifests/$2"
	else
		at=$tmp/$1
		mkdir -p "$at/patches"
		cp "$manifests/$2"/* "$at/"
		cp "$platform/$3"/* "$at/patches/"
		files=$(cd "$at" && printf '%s, ' *.y*ml) patches=$(cd "$at" && printf '{path: %s}, ' patches/*)
		printf 'resources: [%s]\npatches: [%s]\n' "$files" "$patches" >"$at/kustomization.yaml"
		apply -k "$at"
	fi
	# kubectl gives up on one that has no conditions yet.
	until_ok 60 "the definitions" kubectl wait crd --all --for=condition=Established --timeout=10s
}

# first NAME VALUES WORKLOAD…: a chart of the tree, unless Argo CD has it already. It is applied
# in the name that Argo CD applies in, so that it has one owner.
first() {
	name=$1
	say "$name"
	echo "$2" >"$tmp/$name.yaml"
	shift 2
	if ! kubectl get applications.argoproj.io -n argocd "$name" >/dev/null 2>&1; then
		helm template "$name" "$platform/gitops/adopted/$name" -n "$name" -f "$tmp/$name.yaml" >"$tmp/$name-chart.yaml"
		apply --field-manager=argocd-controller -n "$name" -f "$tmp/$name-chart.yaml"
	fi
	for workload in "$@"; do
		rolled_out "$name" "$workload"
	done
}

# app_is NAME: Synced and Healthy, at the tree's commit.
app_is() {
	apps argocd | grep "^$1 " | tee "$tmp/app"
	grep -qxF "$1 Synced Healthy $revision Succeeded" "$tmp/app"
}

# adopted NAME VALUES [FINALIZER]: Argo CD owns the chart from here on.
adopted() {
	say "$1 is Argo CD's"
	apply -f - <<END
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: adopted-$1, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}}
spec:
  description: What the chart of $1 has.
  sourceRepos: ["$GIT_URL"]
  destinations: [{server: "$cluster", namespace: $1}]
  clusterResourceWhitelist: [{group: rbac.authorization.k8s.io, kind: ClusterRole}, {group: rbac.authorization.k8s.io, kind: ClusterRoleBinding}]
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: $1, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}, finalizers: [${3:-}]}
spec:
  project: adopted-$1
  source:
    repoURL: $GIT_URL
    targetRevision: main
    path: gitops/adopted/$1
    helm: {releaseName: $1, valuesObject: $2}
  destination: {server: "$cluster", namespace: $1}
  revisionHistoryLimit: 5
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    retry: {limit: -1, refresh: true, backoff: {duration: 2s, factor: 2, maxDuration: 30s}}
    syncOptions: [ServerSideApply=true]
END
	# What is known of it may be from before the cluster was started again.
	kubectl annotate applications.argoproj.io -n argocd "$1" --overwrite argocd.argoproj.io/refresh=normal >/dev/null
	until_ok 600 "the Application $1 to be Synced and Healthy" app_is "$1"
}

argocd_values="{images: {argocd: \"$image_argocd\", redis: \"$image_redis\"}}"
definitions argocd-definitions argocd crds/argocd
first argocd "$argocd_values" deployment/argocd-redis deployment/argocd-repo-server deployment/argocd-applicationset-controller \
	deployment/argocd-server statefulset/argocd-application-controller
apply -f - <<END
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: platform, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}}
spec:
  description: The addons.
  sourceRepos: ["$GIT_URL"]
  destinations:
    - {server: "$cluster", namespace: cert-manager}
    - {server: "$cluster", namespace: traefik}
    - {server: "$cluster", namespace: load-balancer}
    - {server: "$cluster", namespace: dex}
    - {server: "$cluster", namespace: portal}
    - {server: "$cluster", namespace: argo}
  clusterResourceWhitelist:
    - {group: admissionregistration.k8s.io, kind: MutatingWebhookConfiguration}
    - {group: admissionregistration.k8s.io, kind: ValidatingWebhookConfiguration}
    - {group: external-secrets.io, kind: ClusterSecretStore}
    - {group: networking.k8s.io, kind: IngressClass}
    - {group: rbac.authorization.k8s.io, kind: ClusterRole}
    - {group: rbac.authorization.k8s.io, kind: ClusterRoleBinding}
END
adopted argocd "$argocd_values" # which cannot remove itself

operator_values="{image: \"$image_external_secrets\"}"
definitions external-secrets-definitions external-secrets
first external-secrets "$operator_values" deployment/external-secrets
adopted external-secrets "$operator_values" resources-finalizer.argocd.argoproj.io

say store
cat >"$tmp/store.yaml" <<END
config:
  cluster_name: $DEPLOYMENT
  environment: control-plane
  path_routing: true
  managed_cluster: true
  node_addresses: ""
  auto_cert: false
  acme_server: ""
  acme_ca: ""
  addons_repo_url: $GIT_URL
  addons_repo_revision: main
  addons_repo_basepath: gitops
  domain: $domain
  admin_email: admin@$domain
  storage_class: $class
  gateway: traefik.traefik.svc:443
images:
  argoexec: "$image_argoexec"
  cert-manager-acmesolver: "$image_cert_manager_acmesolver"
  cert-manager-cainjector: "$image_cert_manager_cainjector"
  cert-manager-controller: "$image_cert_manager_controller"
  cert-manager-webhook: "$image_cert_manager_webhook"
  dex: "$image_dex"
  portal: "$image_portal"
  traefik: "$image_traefik"
  workflow-controller: "$image_workflow_controller"
END
helm upgrade --install store "$platform/charts/store" -n store -f "$tmp/store.yaml" --history-max 5 --wait --timeout 5m >/dev/null
kubectl wait externalsecrets.external-secrets.io -n argocd cluster --for=condition=Ready --timeout=120s >/dev/null

# store_is_synced: the cluster's Secret is of this configuration, and not an earlier one.
store_is_synced() {
	kubectl get externalsecrets.external-secrets.io -n argocd cluster -o 'jsonpath={.metadata.generation} {.status.syncedResourceVersion}' >"$tmp/synced"
	read -r generation version <"$tmp/synced" || test -n "$generation"
	case $version in "$generation"-*) ;; *) return 1 ;; esac
}
until_ok 120 "the cluster's Secret" store_is_synced

# store_is_read: nor of what somebody had changed the store to.
store_is_read() {
	kubectl get secret -n argocd cluster -o 'jsonpath={.metadata.annotations.config_digest} {.metadata.annotations.store_digest}' >"$tmp/digests"
	read -r configured stored <"$tmp/digests" || test -n "$configured"
	test "$configured" = "$stored"
}
until_ok 120 "the store in the cluster's Secret" store_is_read

# The addons do not wait for each other here: Argo CD brings them about side by side.
appset() {
	say "$1"
	apply -n argocd -f "$platform/appsets/$1.yaml"
}
definitions traefik-definitions traefik
appset traefik
appset routes
appset load-balancer
definitions cert-manager-definitions cert-manager crds/cert-manager
appset cert-manager
appset certificate
appset dex
appset portal
definitions workflows-definitions argo-workflows
appset workflows

# sets_are NAMES: exactly these are there, and have made the Applications that the cluster's
# labels ask for, since they were asked to.
sets_are() {
	for name in $1; do echo "$name True"; done >"$tmp/expected"
	kubectl get applicationsets.argoproj.io -n argocd -o 'jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="ResourcesUpToDate")].status} {.metadata.annotations.argocd\.argoproj\.io/application-set-refresh}{"\n"}{end}' |
		sed 's/ *$//' >"$tmp/sets"
	diff "$tmp/sets" "$tmp/expected"
}

say apps
kubectl annotate applicationsets.argoproj.io -n argocd --all --overwrite argocd.argoproj.io/application-set-refresh=true >/dev/null
until_ok 300 "the ApplicationSets to have made their Applications" sets_are "cert-manager certificate-by-host certificate-by-path dex load-balancer portal routes-by-host routes-by-path traefik workflows"
kubectl annotate applications.argoproj.io -n argocd --all --overwrite argocd.argoproj.io/refresh=normal >/dev/null
until_ok 1200 "the apps to be Synced and Healthy" apps_are argocd "argocd cert-manager-$DEPLOYMENT dex-$DEPLOYMENT external-secrets portal-$DEPLOYMENT routes-$DEPLOYMENT traefik-$DEPLOYMENT workflows-$DEPLOYMENT"

# ------------------------------------------------------------- post-orchestrator

# page URL NAMESPACE SERVICE: through the load balancer.
page() {
	host=${1#https://}
	curl -fsS --noproxy '*' --max-time 10 --cacert "$tmp/ca.crt" --resolve "$host:443:$(address "$2" "$3")" -o /dev/null "$1/"
}

say access
until_ok 120 "the portal's page" page "https://$domain" traefik traefik

say "installed:"
cat "$tmp/apps"
