# The second half of install.sh for the platform of static manifests, which kubectl applies
# or, where HELMFILE is set, helmfile.
# shellcheck shell=sh disable=SC2154

: "${HELMFILE:=}"

say namespaces
namespaces identity

say secrets
echo "id: \"$(token 32)\"" | keep identity cluster
echo "username: postgres, password: \"$(password)\"" | keep identity database-owner
echo "username: dex, password: \"$(password)\"" | keep identity database-dex
echo "username: console, password: \"$(password)\"" | keep identity database-console
echo "id: \"$(token 32)\", username: admin, email: admin@$domain, password: \"$(password)\"" | keep identity admin
echo "secret: \"$(password)\"" | keep identity dex-client
echo "client-secret: \"$(secret identity dex-client secret)\", session-key: \"$(token 64)\"" | keep identity console

say configuration
apply -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: identity, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data:
  issuer: "https://dex.$domain:5556"
  dex-api: "dex.$domain:5557"
  console-url: "https://console.$domain"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dex, namespace: identity, labels: {slipway.sh/deployment: $DEPLOYMENT}}
data:
  config.yaml: |
    issuer: https://dex.$domain:5556
    storage:
      type: postgres
      config:
        host: postgres
        port: 5432
        database: dex
        user: dex
        password: \$DATABASE_PASSWORD
        ssl: {mode: disable} # the traffic stays inside the cluster
    web:
      https: 0.0.0.0:5556
      tlsCert: /etc/dex/tls/tls.crt
      tlsKey: /etc/dex/tls/tls.key
      headers:
        X-Frame-Options: deny
        X-Content-Type-Options: nosniff
    grpc:
      addr: 0.0.0.0:5557
      tlsCert: /etc/dex/tls/tls.crt
      tlsKey: /etc/dex/tls/tls.key
    telemetry:
      http: 0.0.0.0:5558
    logger: {format: json}
    frontend:
      issuer: "$domain"
    oauth2:
      responseTypes: [code]
      grantTypes: [authorization_code]
      skipApprovalScreen: true # the only client is the platform's own
    enablePasswordDB: true # its users are made through the gRPC API
    staticClients:
      - id: console
        name: Console
        secretEnv: CLIENT_SECRET
        redirectURIs: ["https://console.$domain/callback"]
END

say certificate
certificate identity identity-tls "dex.$domain" "console.$domain" dex.identity.svc dex-api.identity.svc console.identity.svc

# ------------------------------------------------------------------ orchestrator

# overlay NAME PATH [HOST ADDRESS]: a kustomization with a component's files, as they are
# but for namespace, labels, images by digest and, where one is given, what a host is.
overlay() {
	at=$tmp/$1
	mkdir "$at"
	if [ -d "$platform/$2" ]; then cp "$platform/$2"/*.yaml "$at/"; else cp "$platform/$2" "$at/"; fi
	files=$(cd "$at" && printf '%s, ' *.yaml)
	cat >"$at/kustomization.yaml" <<END
namespace: identity
labels: [{pairs: {app.kubernetes.io/managed-by: installer, slipway.sh/deployment: $DEPLOYMENT}}]
resources: [$files]
images:
  - {name: slipway.local/postgresql, newName: "${image_postgresql%@*}", digest: "${image_postgresql#*@}"}
  - {name: slipway.local/dex, newName: "${image_dex%@*}", digest: "${image_dex#*@}"}
  - {name: slipway.local/console, newName: "${image_console%@*}", digest: "${image_console#*@}"}
END
	[ $# -eq 2 ] || cat >>"$at/kustomization.yaml" <<END
patches:
  - target: {kind: Deployment|Job}
    patch: |-
      - {op: add, path: /spec/template/spec/hostAliases, value: [{ip: '$4', hostnames: ["$3"]}]}
END
}

if [ -n "$HELMFILE" ]; then
	# component NAME PATH [HOST ADDRESS]: a chart of the files for helmfile.yaml.
	component() {
		overlay "$@"
		mkdir -p "$tmp/charts/$1/templates"
		echo "{apiVersion: v2, name: $1, version: 1.0.0}" >"$tmp/charts/$1/Chart.yaml"
		kubectl kustomize "$tmp/$1" >"$tmp/charts/$1/templates/objects.yaml"
	}
	cluster_ip() { echo "{{ (lookup \"v1\" \"Service\" \"identity\" \"$1\").spec.clusterIP }}"; }
	ready() { :; } # helmfile waits
else
	component() {
		say "$1"
		overlay "$@"
		apply -k "$tmp/$1"
	}
	cluster_ip() { kubectl get service -n identity "$1" -o 'jsonpath={.spec.clusterIP}'; }
	ready() { "$@"; }
fi
has_endpoint() {
	[ -n "$(kubectl get endpointslices -n identity -l "kubernetes.io/service-name=$1" -o 'jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[*]}')" ]
}
completed() { kubectl wait job -n identity "$1" --for=condition=Complete --timeout=300s >/dev/null; }
# healthy SERVICE PORT: its /healthz answers, in the cluster.
healthy() { until_ok 300 "$1 to be healthy" kubectl get --raw "/api/v1/namespaces/identity/services/https:$1:$2/proxy/healthz"; }

component postgres postgres
ready rolled_out identity statefulset/postgres
ready until_ok 300 "an endpoint of postgres" has_endpoint postgres
component databases jobs/databases
ready completed databases
component dex dex
ready rolled_out identity deployment/dex
ready healthy dex 5556
component create-admin jobs/create-admin.yaml "dex.$domain" "$(cluster_ip dex-api)"
ready completed create-admin
component migrate jobs/migrate.yaml
ready completed migrate
component console console "dex.$domain" "$(cluster_ip dex)"
ready rolled_out identity deployment/console
ready healthy console 443
if [ -n "$HELMFILE" ]; then
	say helmfile
	cp "$bench/helmfile.yaml" "$tmp/"
	helmfile -f "$tmp/helmfile.yaml" sync >"$tmp/helmfile.log" 2>&1 || die "helmfile: $(tail -n 30 "$tmp/helmfile.log")"
fi

# ------------------------------------------------------------- post-orchestrator

# request SERVICE PORT PATH ARGUMENTS…: through the load balancer.
request() {
	service=$1 port=$2 path=$3
	shift 3
	curl -sS --noproxy '*' --max-time 10 --cacert "$tmp/ca.crt" --resolve "$service.$domain:$port:$(address identity "$service")" "$@" \
		"https://$service.$domain:$port$path"
}
sends_to_dex() { [ "$(request console 443 /login -o /dev/null -w '%{http_code}')" = 302 ]; }
signs_in() { request console 443 /healthz -f | grep -q ok; }
says_where() { request dex 5556 /.well-known/openid-configuration -f | grep -q '"authorization_endpoint"'; }

say access
until_ok 60 "the console to send a browser to Dex" sends_to_dex
until_ok 120 "the console's page" request console 443 / -f
until_ok 120 "the console to be healthy" signs_in
until_ok 120 "Dex to say where to sign in" says_where

say "installed:"
kubectl get statefulsets,deployments,jobs -n identity -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.status.readyReplicas}{.status.succeeded}{"\n"}{end}'
