#!/bin/sh
# Starts PostgreSQL; makes its data directory first where there is none.
#
# POSTGRES_USER (default postgres), POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE,
# POSTGRES_DB (default: the user's name). PGDATA is a folder below the volume,
# not the volume itself: the data directory is made beside its place and renamed
# into it when it is complete, so one that was half made is never used.
set -eu

[ "${1:-postgres}" = postgres ] || exec "$@"
[ $# -eq 0 ] || shift

umask 077
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

if [ ! -e "$PGDATA/PG_VERSION" ]; then
	if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
		password=$(cat "$POSTGRES_PASSWORD_FILE")
	else
		password=${POSTGRES_PASSWORD:-}
	fi
	if [ -z "$password" ]; then
		echo "postgresql: set POSTGRES_PASSWORD_FILE or POSTGRES_PASSWORD: there is no data directory yet" >&2
		exit 2
	fi
	case $database in
	*[!A-Za-z0-9_-]*)
		echo "postgresql: POSTGRES_DB may have letters, digits, - and _" >&2
		exit 2
		;;
	esac
	new=$PGDATA.new
	rm -rf "$new"
	mkdir -p "$(dirname "$PGDATA")"
	printf '%s\n' "$password" |
		initdb --pgdata="$new" --username="$user" --pwfile=/dev/stdin --encoding=UTF8 --locale=C.UTF-8 \
			--auth-local=trust --auth-host=scram-sha-256 --data-checksums
	unset password
	printf 'host all all all scram-sha-256\n' >>"$new/pg_hba.conf"
	if [ "$database" != postgres ]; then
		printf 'CREATE DATABASE "%s";\n' "$database" | postgres --single -j -D "$new" postgres >/dev/null
	fi
	sync
	if [ -d "$PGDATA" ] && ! rmdir "$PGDATA"; then
		echo "postgresql: $PGDATA is a mount point or holds something that is no data directory; set PGDATA to a folder below the volume" >&2
		exit 2
	fi
	mv "$new" "$PGDATA"
	sync
fi
# Where clients look first; a pod with a read-only root may not have it.
sockets=/run/postgresql
mkdir -p "$sockets" 2>/dev/null && [ -w "$sockets" ] || sockets=/tmp
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories="$sockets" "$@"
