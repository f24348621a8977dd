# The second half of install.sh for the reference platform: git server, Argo CD, the apps.
# shellcheck shell=sh disable=SC2154

git_host=gitea.gitea.svc
version=$(sed -n 's/^version: *//p' "$platform/platform.yaml")
welcome=
app_names="base database guestbook root"
case $version in
1.0.0) ;;
1.1.0)
	welcome='  welcome: {enabled: true, images: [busybox], namespace: platform, wave: 30}'
	app_names="$app_names welcome"
	;;
2.0.0) ;;
*) die "the script does not know release $version" ;;
esac

if [ -n "${UPGRADE:-}" ]; then
	# shellcheck source=/dev/null
	. "$bench/upgrade.sh"
	say "backup"
	back_up
	say "migrations before"
	# shellcheck disable=SC2086 # a word each
	migrate $migrations_before
fi

say namespaces
namespaces gitea argocd platform database guestbook

say secrets
echo "username: gitea-admin, password: \"$(password)\", email: admin@$domain" | keep gitea gitea-admin
echo "username: slipway, password: \"$(password)\", email: slipway@$domain" | keep gitea gitea-slipway
echo "username: argocd, password: \"$(password)\", email: argocd@$domain" | keep gitea gitea-reader
echo "internal-token: \"$(token 64)\", secret-key: \"$(token 64)\", jwt-secret: \"$(password 43)\"" | keep gitea gitea-keys
echo "username: platform, password: \"$(password)\"" | keep database database-owner
echo "username: guestbook, password: \"$(password)\"" | keep database database-reader
echo "username: guestbook, password: \"$(secret database database-reader password)\"" | keep guestbook database-reader
echo "auth: \"$(password)\"" | keep argocd argocd-redis

say certificate
certificate gitea gitea-tls "*.$domain" "$domain" "$git_host" "$git_host.cluster.local"
apply -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-tls-certs-cm, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT, app.kubernetes.io/part-of: argocd}}
data:
  $git_host: |
$(indented)
---
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

say gitea
cat >"$tmp/values.yaml" <<END
images: {gitea: "$image_gitea"}
host: gitea.$domain
scale: "50"
storageClass: $class
tls: {secretName: gitea-tls}
END
helm upgrade --install gitea "$platform/charts/gitea" -n gitea -f "$tmp/values.yaml" --history-max 5 --wait --timeout 5m >/dev/null
fingerprint() { openssl x509 -noout -fingerprint -sha256; }
shown() { openssl s_client -connect "$(address gitea gitea):443" -servername "gitea.$domain" </dev/null 2>/dev/null | fingerprint; }
until_ok 120 "the git server to answer through its load balancer" shown
if [ "$(shown)" != "$(fingerprint <"$tmp/tls.crt")" ]; then # it reads its certificate when it starts
	kubectl rollout restart -n gitea deployment/gitea >/dev/null
	rolled_out gitea deployment/gitea
	until_ok 120 "the git server to answer through its load balancer" shown
	[ "$(shown)" = "$(fingerprint <"$tmp/tls.crt")" ] || die "the git server shows another certificate"
fi
gitea_ip=$(address gitea gitea)
for account in gitea-admin gitea-slipway gitea-reader; do
	printf 'user = "%s:%s"\n' "$(secret gitea $account username)" "$(secret gitea $account password)" >"$tmp/$account.curl"
done
# gitea ACCOUNT PATH ARGUMENTS…: a request as a user; "" is a stranger.
gitea() {
	who=${1:+-K $tmp/$1.curl} path=$2
	shift 2
	# shellcheck disable=SC2086 # two words or none
	curl -sS --noproxy '*' --max-time 30 --cacert "$tmp/ca.crt" --resolve "gitea.$domain:443:$gitea_ip" $who "$@" "https://gitea.$domain$path"
}
logged_in() { gitea "$1" /api/v1/user -f | grep -q "\"login\":\"$2\""; }
until_ok 120 "slipway to log in" logged_in gitea-slipway slipway
until_ok 120 "argocd to log in" logged_in gitea-reader argocd
until_ok 120 "gitea-admin to log in" logged_in gitea-admin gitea-admin
# repository NAME: it is there, and Argo CD's account may read it.
repository() {
	[ "$(gitea gitea-slipway "/api/v1/repos/slipway/$1" -o /dev/null -w '%{http_code}')" = 200 ] ||
		gitea gitea-slipway /api/v1/user/repos -f -o /dev/null -H 'Content-Type: application/json' \
			-d "{\"name\": \"$1\", \"private\": true, \"default_branch\": \"main\", \"auto_init\": false}"
	gitea gitea-slipway "/api/v1/repos/slipway/$1/collaborators/argocd/permission" | grep -q '"permission":"read"' ||
		gitea gitea-slipway "/api/v1/repos/slipway/$1/collaborators/argocd" -f -o /dev/null -X PUT -H 'Content-Type: application/json' \
			-d '{"permission": "read"}'
}
repository platform
stranger=stranger-$(token 12)
gitea "" /user/sign_up -o /dev/null -d "user_name=$stranger&email=$stranger@example.invalid&password=Aa1!$stranger&retype=Aa1!$stranger"
[ "$(gitea gitea-admin "/api/v1/users/$stranger" -o /dev/null -w '%{http_code}')" = 404 ] || die "a stranger can sign up"
reader_password=$(secret gitea gitea-reader password)
apply -f - <<END
apiVersion: v1
kind: Secret
metadata: {name: repository-platform, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT, argocd.argoproj.io/secret-type: repository}}
stringData: {type: git, url: "https://$git_host/slipway/platform.git", username: argocd, password: "$reader_password"}
---
apiVersion: v1
kind: Secret
metadata: {name: repositories-slipway, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT, argocd.argoproj.io/secret-type: repo-creds}}
stringData: {type: git, url: "https://$git_host/slipway/", username: argocd, password: "$reader_password"}
END

say argocd
overlay=$tmp/argocd
mkdir "$overlay"
cp "$manifests/argocd/core-install.yaml" "$platform/argocd/config.yaml" "$platform/argocd/workloads.yaml" "$overlay/"
cat >"$overlay/kustomization.yaml" <<END
namespace: argocd
labels: [{pairs: {slipway.sh/deployment: $DEPLOYMENT}}]
resources: [core-install.yaml]
patches: [{path: config.yaml}, {path: workloads.yaml}]
images:
  - {name: quay.io/argoproj/argocd, newName: "${image_argocd%@*}", digest: "${image_argocd#*@}"}
  - {name: public.ecr.aws/docker/library/redis, newName: "${image_redis%@*}", digest: "${image_redis#*@}"}
END
apply -k "$overlay"
kubectl wait crd applications.argoproj.io appprojects.argoproj.io --for=condition=Established --timeout=60s >/dev/null
apply -f - <<END
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: slipway-root, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}}
spec:
  description: The Application that brings the others.
  sourceRepos: ["https://$git_host/slipway/platform.git"]
  destinations: [{server: "https://kubernetes.default.svc", namespace: argocd}]
  clusterResourceWhitelist: []
  namespaceResourceWhitelist: [{group: argoproj.io, kind: Application}]
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: platform, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}}
spec:
  description: The platform's own apps.
  sourceRepos: ["https://$git_host/slipway/platform.git"]
  destinations:
    - {server: "https://kubernetes.default.svc", namespace: platform}
    - {server: "https://kubernetes.default.svc", namespace: database}
    - {server: "https://kubernetes.default.svc", namespace: guestbook}
  clusterResourceWhitelist: [{group: scheduling.k8s.io, kind: PriorityClass}]
END
for workload in deployment/argocd-redis deployment/argocd-repo-server deployment/argocd-applicationset-controller \
	statefulset/argocd-application-controller; do
	rolled_out argocd $workload
done

printf 'https://slipway:%s@gitea.%s\n' "$(secret gitea gitea-slipway password)" "$domain" >"$tmp/credentials"
git config --global credential.helper "store --file $tmp/credentials"
git config --global http.sslCAInfo "$tmp/ca.crt"
git config --global http.curloptResolve "gitea.$domain:443:$gitea_ip"
git config --global user.name Installer
git config --global user.email "installer@$domain"
# push DIRECTORY REPOSITORY MESSAGE: the branch main holds the directory then;
# sets revision to its commit. It pushes only what differs.
push() {
	rm -rf "$tmp/clone"
	git clone -q "https://gitea.$domain/slipway/$2.git" "$tmp/clone" 2>/dev/null
	git -C "$tmp/clone" symbolic-ref HEAD refs/heads/main
	git -C "$tmp/clone" rm -rfq --ignore-unmatch .
	cp -R "$1/." "$tmp/clone/"
	git -C "$tmp/clone" add -A
	if ! git -C "$tmp/clone" diff --cached --quiet; then
		git -C "$tmp/clone" commit -q -m "$3"
		git -C "$tmp/clone" push -q origin main
	fi
	revision=$(git -C "$tmp/clone" rev-parse HEAD)
}

# ------------------------------------------------------------------ orchestrator

say "the GitOps tree"
cp -R "$platform/gitops" "$tmp/tree"
cat >"$tmp/tree/root-app/slipway.yaml" <<END
applications: {namespace: argocd, project: platform}
components:
  base: {enabled: true, images: [], namespace: platform, wave: 10}
  database: {enabled: true, images: [postgresql], namespace: database, wave: 20}
  guestbook: {enabled: true, images: [guestbook], namespace: guestbook, wave: 30}
  toolbox: {enabled: false, images: [busybox], namespace: platform, wave: 30}
$welcome
deployment: $DEPLOYMENT
domain: $domain
images: {busybox: "$image_busybox", guestbook: "$image_guestbook", postgresql: "$image_postgresql"}
infrastructure:
  clusterName: $DEPLOYMENT
  loadBalancer: {kind: node}
  objectStore: {kind: none}
  database: {kind: in-cluster}
platform: $version
repository: {revision: main, url: "https://$git_host/slipway/platform.git"}
scale: "50"
storageClass: $class
END
push "$tmp/tree" platform "reference $version for $DEPLOYMENT"

say apps
apply -f - <<END
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: root, namespace: argocd, labels: {slipway.sh/deployment: $DEPLOYMENT}, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: slipway-root
  source:
    repoURL: https://$git_host/slipway/platform.git
    targetRevision: main
    path: root-app
    helm:
      releaseName: root
      valueFiles: [slipway.yaml]
      parameters: [{name: repository.revision, value: \$ARGOCD_APP_REVISION, forceString: true}]
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  revisionHistoryLimit: 5
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    retry: {limit: -1, refresh: true, backoff: {duration: 2s, factor: 2, maxDuration: 30s}}
END
kubectl annotate applications.argoproj.io -n argocd root argocd.argoproj.io/skip-reconcile- >/dev/null
# What is known of the apps may be from before the cluster was started again.
kubectl annotate applications.argoproj.io -n argocd --all --overwrite argocd.argoproj.io/refresh=normal >/dev/null
until_ok 1200 "the apps to be Synced and Healthy" apps_are argocd "$app_names"

if [ -n "${UPGRADE:-}" ]; then
	say "migrations after"
	# shellcheck disable=SC2086 # a word each
	migrate $migrations_after
	data_is_whole
fi

# ------------------------------------------------------------- post-orchestrator

say access
gitea_is_healthy() { gitea "" /api/healthz -f | grep -q '"status": "pass"'; }
guestbook() { curl -fsS --noproxy '*' --max-time 10 --resolve "guestbook.$domain:80:$(address guestbook guestbook)" "http://guestbook.$domain$1"; }
rows_are_there() { guestbook /api/entries | grep -q 'The slipway is greased.'; }
until_ok 120 "Gitea's health" gitea_is_healthy
until_ok 120 "Gitea's page" gitea "" / -f
until_ok 120 "the guestbook's page" guestbook /
until_ok 120 "the rows of the database in the guestbook" rows_are_there

say "installed:"
cat "$tmp/apps"
