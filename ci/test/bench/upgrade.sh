# What an upgrade does with the data of the platform: a dump that is restored beside it and
# checked, the migrations before and after the components, and a check against the dump.
# reference.sh calls its functions. The pods and their commands are the release's, as
# functions in data.sh, which are given a pod, "namespace/name".
# shellcheck shell=sh disable=SC2154

# shellcheck source=/dev/null
. "$bench/data.sh"

in_pod() {
	pod=$1
	shift
	kubectl exec -i -n "${pod%/*}" "${pod#*/}" -- "$@"
}

# with_pod POD OBJECT: it runs.
with_pod() {
	kubectl delete pod -n "${1%/*}" "${1#*/}" --ignore-not-found >/dev/null
	printf '%s\n' "$2" | apply -f -
	kubectl wait pod -n "${1%/*}" "${1#*/}" --for=condition=Ready --timeout=240s >/dev/null
}

without_pod() { kubectl delete pod -n "${1%/*}" "${1#*/}" >/dev/null; }

answers() { in_pod "$live" pg_isready --quiet </dev/null; }

# back_up keeps a dump on the volume, once it has been restored beside the data and checked.
# It sets seen to what the check says.
back_up() {
	dump=$state/backups/$(date +%s)
	mkdir -p "$state/backups"
	with_pod "$live" "$live_pod"
	until_ok 240 "the database, which starts again with the node" answers
	data_dump "$live" </dev/null >"$dump"
	[ -s "$dump" ] || die "the dump is empty"
	sha256sum "$dump" >"$dump.sha256"
	with_pod "$scratch" "$scratch_pod"
	sha256sum -c "$dump.sha256" >/dev/null || die "the dump is damaged"
	data_restore "$scratch" <"$dump"
	seen=$(data_check "$scratch" </dev/null)
	[ -n "$seen" ] || die "the backup cannot be proved"
	without_pod "$scratch"
}

# migrate NAME…: in the pod that back_up has started.
migrate() { for migration in "$@"; do "$migration" "$live" </dev/null; done; }

# data_is_whole: it says of the data what it has said of the backup.
data_is_whole() {
	printf '%s\n' "$seen" | data_check "$live" >"$tmp/checked" || die "the data is not what was backed up: $seen"
	without_pod "$live"
}
