#!/bin/sh
# The installer that one would write without Slipway: plain, sequential, and
# honest. It does what `slipway install` does on provider local, with the same
# binaries, images, charts and checks, so that `make bench` has something to
# compare with; docs/benchmarks.md lists the differences.
#
# It runs in the toolchain container, connected to the node's service, with
# DEPLOYMENT, PLATFORM, which is the name of the file with its second half, and these files:
#   /bench/pins.env       image_NAME=reference by digest, version_TOOL=version
#   /slipway/terraform    the Terraform root of provider local
#   /slipway/addons       its add-ons, with {{ .Name }} and {{ image "NAME" }} to fill in
#   /slipway/platform     the platform release
#   /slipway/manifests    third-party manifests by project
#   /slipway/state        the deployment's volume
# REPEAT_CHECKS=1 makes it verify again by use what it has verified before.
set -eu
umask 077

: "${DEPLOYMENT:?the name of the deployment}"
: "${PLATFORM:?reference or identity}"
: "${REPEAT_CHECKS:=}"
. /bench/pins.env

domain=slipway.test
state=/slipway/state
platform=/slipway/platform
manifests=/slipway/manifests
bench=/bench
checks=slipway-checks-$DEPLOYMENT
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp" CHECKPOINT_DISABLE=1 KUBECONFIG="$state/secrets/kubeconfig"
begun=$(date +%s)

say() { echo "$(($(date +%s) - begun))s $*"; }

die() {
	echo "error: $*" >&2
	exit 1
}

# until_ok SECONDS WHAT COMMAND…: once a second until the command succeeds.
until_ok() {
	limit=$1 what=$2
	shift 2
	since=$(date +%s)
	until "$@" >"$tmp/seen" 2>&1; do
		[ $(($(date +%s) - since)) -lt "$limit" ] || die "waited ${limit}s for $what; last seen: $(tail -n 3 "$tmp/seen")"
		sleep 1
	done
}

apply() { kubectl apply --server-side --force-conflicts --field-manager=installer "$@" >/dev/null; }

# checked NAME: whether an earlier run has verified NAME by use.
checked() { [ -z "$REPEAT_CHECKS" ] && [ -e "$state/checked/$1" ]; }

remember() { mkdir -p "$state/checked" && touch "$state/checked/$1"; }

rolled_out() { kubectl rollout status -n "$1" "$2" --timeout=300s >/dev/null; }

# address NAMESPACE SERVICE: the address of its load balancer; fails without one.
address() {
	ip=$(kubectl get service -n "$1" "$2" -o 'jsonpath={.status.loadBalancer.ingress[0].ip}')
	[ -n "$ip" ] && echo "$ip"
}

# secret NAMESPACE NAME KEY: one decoded value; empty when there is none.
secret() { kubectl get secret -n "$1" "$2" --ignore-not-found -o "go-template={{ index .data \"$3\" }}" | base64 -d; }

password() { LC_ALL=C tr -dc A-Za-z0-9 </dev/urandom | head -c "${1:-32}"; }
token() { LC_ALL=C tr -dc 0-9a-f </dev/urandom | head -c "$1"; }

# ---------------------------------------------------------------- infrastructure

say preflight
[ "$(nproc)" -ge 2 ] || die "2 CPUs are needed"
[ "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -ge 3932160 ] || die "4 GiB of memory are needed"
[ "$(df --output=avail -k "$state" | tail -n 1)" -ge 10485760 ] || die "10 GiB of disk are needed"
grep -qw overlay /proc/filesystems || die "the kernel has no overlay filesystem"
terraform version -json | grep -q "\"terraform_version\": \"$version_terraform\"" || die "terraform is not $version_terraform"
helm version --template '{{.Version}}' | grep -q "^v$version_helm" || die "helm is not $version_helm"
kubectl version --client | grep -q "v$version_kubectl" || die "kubectl is not $version_kubectl"

say terraform
root=$tmp/terraform
mkdir -p "$root" "$state/terraform"
cp /slipway/terraform/*.tf "$root/"
cat >"$root/slipway.auto.tfvars.json" <<END
{"deployment": "$DEPLOYMENT", "api_endpoint": "https://cluster:6443", "storage_class": "local-path"}
END
terraform -chdir="$root" init -input=false -no-color -reconfigure -backend-config="path=$state/terraform/terraform.tfstate" >/dev/null
changes=0
terraform -chdir="$root" plan -input=false -no-color -lock-timeout=60s -detailed-exitcode -out=plan >/dev/null || changes=$?
case $changes in
0) ;;
2) terraform -chdir="$root" apply -input=false -no-color -lock-timeout=60s plan >/dev/null ;;
*) die "terraform plan failed" ;;
esac
terraform -chdir="$root" output -json >"$tmp/outputs.json"
class=$(tr -d ' \n' <"$tmp/outputs.json" | sed 's/.*"storage_class":{.*"value":{"name":"\([^"]*\)".*/\1/')

say cluster
node_is_alive() {
	renewed=$(kubectl get leases -n kube-node-lease -o 'jsonpath={.items[0].spec.renewTime}')
	[ -n "$renewed" ] && [ $(($(date +%s) - $(date -d "$renewed" +%s))) -le 15 ]
}
until_ok 300 "the cluster's access file" test -s "$KUBECONFIG"
until_ok 300 "the API" kubectl get --raw /readyz
until_ok 300 "a sign of life of the node" node_is_alive
kubectl wait node --all --for=condition=Ready --timeout=300s >/dev/null

say add-ons
sed -e "s|{{ image \"coredns\" }}|$image_coredns|; s|{{ .Address }}|10.96.0.10|; s|{{ .Domain }}|cluster.local|" \
	/slipway/addons/coredns.yaml | apply -f -
sed -e "s|{{ image \"local-path-provisioner\" }}|$image_local_path_provisioner|; s|{{ image \"busybox\" }}|$image_busybox|; s|{{ .Class }}|$class|" \
	-e "s|{{ .Path }}|/var/lib/slipway-node/volumes|" /slipway/addons/storage.yaml | apply -f -
rolled_out kube-system deployment/coredns
rolled_out kube-system deployment/local-path-provisioner

begin_checks() {
	apply -f - <<END
{apiVersion: v1, kind: Namespace, metadata: {name: $checks, labels: {app.kubernetes.io/managed-by: installer, slipway.sh/deployment: $DEPLOYMENT}}}
END
	kubectl delete deployments,pods,services,persistentvolumeclaims -n "$checks" -l "check=$1" >/dev/null 2>&1
	until_ok 60 "the namespace's service account" kubectl get serviceaccount -n "$checks" default
}

# check_pod NAME COMMAND: runs a pod that has the volume at /data to its end.
check_pod() {
	kubectl create -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: storage-$1, namespace: $checks, labels: {check: storage}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  containers:
    - name: $1
      image: $image_busybox
      imagePullPolicy: IfNotPresent
      command: [/bin/sh, -c, "$2"]
      volumeMounts: [{name: data, mountPath: /data}]
      resources: {requests: {memory: 8Mi}}
  volumes: [{name: data, persistentVolumeClaim: {claimName: storage-data}}]
END
	kubectl wait pod -n "$checks" "storage-$1" --for=jsonpath='{.status.phase}'=Succeeded --timeout=240s >/dev/null
}

say "storage: a volume written and read back"
default=$(kubectl get storageclass "$class" -o 'jsonpath={.metadata.annotations.storageclass\.kubernetes\.io/is-default-class}')
[ "$default" = true ] || die "StorageClass $class is not the default"
if ! checked storage; then
	begin_checks storage
	kubectl create -f - >/dev/null <<END
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: storage-data, namespace: $checks, labels: {check: storage}}
spec: {accessModes: [ReadWriteOnce], storageClassName: $class, resources: {requests: {storage: 1Mi}}}
END
	written=$(password)
	check_pod write "busybox echo $written > /data/probe && busybox sync"
	check_pod read "busybox cat /data/probe"
	[ "$(kubectl logs -n "$checks" storage-read)" = "$written" ] || die "the volume has lost what was written"
	volume=$(kubectl get persistentvolumeclaim -n "$checks" storage-data -o 'jsonpath={.spec.volumeName}')
	kubectl delete pods,persistentvolumeclaims -n "$checks" -l check=storage >/dev/null
	kubectl wait persistentvolume "$volume" --for=delete --timeout=240s >/dev/null
	remember storage
fi

say "load balancer: a Service that answers"
if checked loadbalancer; then
	kubectl get services -A -o 'go-template={{ range .items }}{{ if eq .spec.type "LoadBalancer" }}{{ if not .status.loadBalancer.ingress }}{{ .metadata.name }}{{ "\n" }}{{ end }}{{ end }}{{ end }}' >"$tmp/without"
	[ ! -s "$tmp/without" ] || die "Services without an address: $(cat "$tmp/without")"
else
	begin_checks loadbalancer
	page=$(password)
	kubectl create -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: loadbalancer-web, namespace: $checks, labels: {check: loadbalancer}}
spec:
  selector: {matchLabels: {check: loadbalancer}}
  template:
    metadata: {labels: {check: loadbalancer}}
    spec:
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      containers:
        - name: web
          image: $image_busybox
          imagePullPolicy: IfNotPresent
          command: [/bin/sh, -c, "busybox echo $page > /www/index.html && exec busybox httpd -f -p 8080 -h /www"]
          volumeMounts: [{name: www, mountPath: /www}]
          resources: {requests: {memory: 8Mi}}
      volumes: [{name: www, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: loadbalancer-web, namespace: $checks, labels: {check: loadbalancer}}
spec: {type: LoadBalancer, selector: {check: loadbalancer}, ports: [{name: http, port: 18080, targetPort: 8080}]}
END
	rolled_out "$checks" deployment/loadbalancer-web
	until_ok 240 "an address of the check's Service" address "$checks" loadbalancer-web
	page_is_there() { [ "$(curl -fsS --noproxy '*' --max-time 5 "http://$(address "$checks" loadbalancer-web):18080/")" = "$page" ]; }
	until_ok 240 "the check's page" page_is_there
	kubectl delete deployments,services -n "$checks" -l check=loadbalancer >/dev/null
	remember loadbalancer
fi

# -------------------------------------------------------------- pre-orchestrator

# namespaces NAME…: those of the platform, and the installer's own.
namespaces() {
	namespaces="slipway-system $*"
	for namespace in $namespaces; do
		labels="app.kubernetes.io/managed-by: installer, slipway.sh/deployment: $DEPLOYMENT"
		[ "$namespace" = slipway-system ] || labels="$labels, pod-security.kubernetes.io/enforce: restricted"
		echo "{apiVersion: v1, kind: Namespace, metadata: {name: $namespace, labels: {$labels}}}"
		echo ---
	done | apply -f -
}

# keep NAMESPACE NAME [LABELS]: makes the Secret of standard input unless it is there.
keep() {
	if kubectl get secret -n "$1" "$2" >/dev/null 2>&1; then
		cat >/dev/null
		return
	fi
	{
		echo "{apiVersion: v1, kind: Secret, metadata: {namespace: $1, name: $2, labels: {slipway.sh/deployment: $DEPLOYMENT${3:+, $3}}},"
		echo " stringData: {$(cat)}}"
	} | kubectl create -f - >/dev/null
}

encoded() { base64 -w 0 <"$tmp/$1"; }
indented() { sed 's/^/    /' "$tmp/ca.crt"; }

# authority: its Secret, and what trusts it in every namespace.
authority() {
	cat <<END
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: slipway-ca, namespace: slipway-system, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data: {tls.crt: $(encoded ca.crt), tls.key: $(encoded ca.key)}
END
	for namespace in $namespaces; do
		cat <<END
---
apiVersion: v1
kind: ConfigMap
metadata: {name: slipway-ca, namespace: $namespace, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data:
  ca.crt: |
$(indented)
END
	done
}

published=
# certificate NAMESPACE SECRET HOST…: a certificate for the hosts, of a CA that every
# namespace has in a ConfigMap. Both stay as long as they can.
certificate() {
	in=$1 name=$2
	shift 2
	names=$(printf ', DNS:%s' "$@")
	names=${names#, }
	secret slipway-system slipway-ca tls.crt >"$tmp/ca.crt"
	secret slipway-system slipway-ca tls.key >"$tmp/ca.key"
	if ! openssl x509 -in "$tmp/ca.crt" -noout -checkend 2592000 >/dev/null 2>&1; then
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/O=Installer/CN=CA of $DEPLOYMENT" \
			-addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign \
			-keyout "$tmp/ca.key" -out "$tmp/ca.crt" 2>/dev/null
	fi
	secret "$in" "$name" tls.crt >"$tmp/tls.crt"
	secret "$in" "$name" tls.key >"$tmp/tls.key"
	if ! openssl x509 -in "$tmp/tls.crt" -noout -checkend 2592000 >/dev/null 2>&1 ||
		! openssl verify -CAfile "$tmp/ca.crt" "$tmp/tls.crt" >/dev/null 2>&1 ||
		! openssl x509 -in "$tmp/tls.crt" -noout -ext subjectAltName | grep -qF "$names"; then
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/O=Installer/CN=$1" \
			-keyout "$tmp/tls.key" -out "$tmp/tls.csr" 2>/dev/null
		printf 'subjectAltName=%s\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth\n' "$names" >"$tmp/tls.ext"
		openssl x509 -req -in "$tmp/tls.csr" -CA "$tmp/ca.crt" -CAkey "$tmp/ca.key" -days 365 -extfile "$tmp/tls.ext" \
			-out "$tmp/tls.crt" 2>/dev/null
	fi
	{
		[ -n "$published" ] || authority
		cat <<END
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: $name, namespace: $in, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data: {tls.crt: $(encoded tls.crt), tls.key: $(encoded tls.key), ca.crt: $(encoded ca.crt)}
END
	} | apply -f -
	published=1
}

# apps NAMESPACE: a line for each Application: name, sync, health, commit, last
# sync, and "normal" while a refresh is under way.
apps() {
	kubectl get applications.argoproj.io -n "$1" -o 'jsonpath={range .items[*]}{.metadata.name} {.status.sync.status} {.status.health.status} {.status.sync.revision} {.status.operationState.phase} {.metadata.annotations.argocd\.argoproj\.io/refresh}{"\n"}{end}' |
		sed 's/ *$//'
}
# apps_are NAMESPACE NAMES: exactly these are there, Synced and Healthy, at the commit revision.
apps_are() {
	for name in $2; do echo "$name Synced Healthy $revision Succeeded"; done >"$tmp/expected"
	apps "$1" >"$tmp/apps"
	diff "$tmp/apps" "$tmp/expected"
}

# shellcheck source=/dev/null
. "$bench/$PLATFORM.sh"
