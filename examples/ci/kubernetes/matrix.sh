#!/usr/bin/env bash
# Tries upgrades on all Dagger engines of a Kubernetes cluster, one cell at a time on each.
# It runs in a pod of that cluster: engines are reached at their pods' addresses.
#
#	matrix.sh --from 1.0.0,1.1.0 --to 2.0.0   and other flags of slipway upgrade-matrix
set -euo pipefail
engines=$(kubectl get pods --namespace dagger --selector app.kubernetes.io/instance=dagger --output json |
	jq -r '.items[].status | select(any(.containerStatuses[]?; .ready)) | "tcp://\(.podIP):1234"')
if [ -z "$engines" ]; then
	echo "no engine in namespace dagger is ready" >&2
	exit 3
fi
exec slipway upgrade-matrix --engine "$(paste -sd, <<<"$engines")" --parallel "$(wc -l <<<"$engines")" "$@"
