#!/usr/bin/env bash
# Collects in the folder collected what the runs of a CI job leave: the report of each, the
# package of the last one that failed, and summary.md, which ends with the lines that
# reproduce it elsewhere. An upgrade matrix whose results are in collected/upgrades has packed
# its cells that failed by itself. SLIPWAY_CONFIG is the deployment's configuration.
#
#	collect.sh begin   before the first run, in a checkout of Slipway
#	collect.sh         after the last one, whatever came of it
#
# The summary goes where GitHub and Azure show one, else into the log.
set -euo pipefail
dir=collected
summary=$dir/summary.md

# pack RUN FILE FLAG…: the package of a run. A job fails for what it was for, not for this.
pack() {
	slipway save --run "$1" --out "$2" "${@:3}" </dev/null || echo "the run $1 is not packed"
}

# reproduce FILE LINE…: what a person types elsewhere, with a file among the artifacts.
reproduce() {
	printf '\n### Reproduce it\nWith %s of this job, in a checkout of Slipway:\n\n```console\n' "$1"
	printf '$ git checkout %s && make engine bundle && eval "$(make -s env)"\n' "$(git rev-parse HEAD)"
	printf '$ %s\n' "${@:2}"
	printf '```\n'
}

# runs: id, outcome and workflow of each that was not there before.
runs() {
	slipway runs --config "$SLIPWAY_CONFIG" --output json |
		jq -r --slurpfile before "$dir/before.json" '($before[0] | map(.id)) as $old
			| .[] | select(.id | IN($old[]) | not) | select(.outcome != "running") | "\(.id) \(.outcome) \(.workflow)"'
}

collect_runs() {
	local all run outcome workflow what failed=
	all=$(runs)
	if [ -z "$all" ]; then
		echo "no run left a record"
		return
	fi
	while read -r run outcome workflow; do
		slipway report --config "$SLIPWAY_CONFIG" --run "$run" --out "$dir/$run" </dev/null
		cat "$dir/$run/summary.md" >>"$summary"
		if [ "$outcome" != succeeded ]; then failed=$run what=$workflow; fi
	done <<<"$all"
	if [ -z "$failed" ]; then return; fi
	pack "$failed" "$dir/run.tar.zst" --config "$SLIPWAY_CONFIG"
	case $what in
	install | upgrade) reproduce run.tar.zst "slipway reproduce --package run.tar.zst" >>"$summary" ;;
	test) reproduce run.tar.zst "slipway install --package run.tar.zst --keep-cluster --name repro" "slipway test --name repro" >>"$summary" ;;
	esac
}

collect_upgrades() {
	local results=$dir/upgrades cell line
	jq -r '"## Upgrades\n\n| from | to | scale | style | faults | result |\n|---|---|---|---|---|---|",
		(.cells[] | "| \(.cell.from) | \(.cell.to) | \(.cell.scale) | \(.cell.style) | \(.cell.faults) | \(.outcome) \(.code // "") |")' \
		"$results/matrix.json" >>"$summary"
	jq -r --arg config "$SLIPWAY_CONFIG" '.cells[] | select(.outcome == "failed") | "\(.deployment) \(if .reproduce then "slipway reproduce --package run.tar.zst" else
		@sh "slipway upgrade-matrix --config \($config) --from \(.cell.from) --to \(.cell.to) --scale \(.cell.scale) --style \(.cell.style) --faults \(.cell.faults)" end)"' \
		"$results/matrix.json" | while read -r cell line; do
		reproduce "upgrades/$cell" "$line" >>"$summary"
	done
}

if [ "${1-}" = begin ]; then
	mkdir -p "$dir"
	slipway runs --config "$SLIPWAY_CONFIG" --output json >"$dir/before.json"
	exit
fi
if [ ! -f "$dir/before.json" ] && [ ! -f "$dir/upgrades/matrix.json" ]; then
	echo "nothing was run"
	exit
fi
if [ -n "${TF_BUILD-}" ]; then # first: what there is is published also if the rest fails
	echo "##vso[task.setvariable variable=COLLECTED]yes"
fi
environment=$(make -s env)
eval "$environment"
: >"$summary"
if [ -f "$dir/before.json" ]; then collect_runs; fi
if [ -f "$dir/upgrades/matrix.json" ]; then collect_upgrades; fi
if [ -n "${GITHUB_STEP_SUMMARY-}" ]; then
	cat "$summary" >>"$GITHUB_STEP_SUMMARY"
elif [ -n "${TF_BUILD-}" ]; then
	echo "##vso[task.uploadsummary]$PWD/$summary"
else
	cat "$summary"
fi
