package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clusterOfOnePod is what upgrade.sh gets from install.sh: kubectl says what it would do, and a
// command in a pod is told with its standard input.
const clusterOfOnePod = `set -eu
. "$noted/lib.sh"
die() { echo "error: $*" >&2; exit 1; }
apply() { cat >>"$noted/objects"; }
until_ok() { echo "until $*" >>"$noted/did"; }
kubectl() {
	case $1 in
	exec)
		pod=$5
		shift 6
		printf '%s\n' "$pod: $*" >>"$noted/did"
		case $* in
		pg_dump*) echo rows ;;
		*"read -r SEEN"*) read -r before || before=; [ "$pod" != "${BROKEN:-}" ] || exit 1; echo "3 entries" ;;
		*pg_restore*) cat >>"$noted/restored" ;;
		esac
		;;
	*) echo "$*" >>"$noted/did" ;;
	esac
}
. "$bench/upgrade.sh"
back_up
migrate $migrations_before
migrate $migrations_after
data_is_whole
`

// TestAnUpgradeByTheScript does with the data what the release says, in the order in which
// Slipway does it.
func TestAnUpgradeByTheScript(t *testing.T) {
	images := map[string]string{"postgresql": "slipway.local/postgresql@sha256:1"}
	files := os.DirFS(directory(major()))
	commands, err := dataCommands(files, images)
	require.NoError(t, err)
	run := func(env ...string) (seen, out string, err error) {
		seen = t.TempDir()
		bench := filepath.Join(seen, "bench")
		require.NoError(t, os.Mkdir(bench, 0o755))
		script, err := os.ReadFile("upgrade.sh")
		require.NoError(t, err)
		for name, text := range map[string]string{"bench/upgrade.sh": string(script), "bench/data.sh": commands, "lib.sh": ""} {
			require.NoError(t, os.WriteFile(filepath.Join(seen, name), []byte(text), 0o600))
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", clusterOfOnePod)
		cmd.Env = append(append(os.Environ(), "noted="+seen, "bench="+bench, "state="+seen, "tmp="+seen), env...)
		text, err := cmd.CombinedOutput()
		return seen, string(text), err
	}
	seen, out, err := run()
	require.NoError(t, err, out)
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(seen, name))
		require.NoError(t, err)
		return string(text)
	}
	did := read("did")
	at := 0
	for _, next := range []string{
		"answers\n", "database-entries: pg_dump --format=custom", "database-entries-scratch: sh -euc pg_restore", "database-entries-scratch: sh -euc read -r SEEN",
		"delete pod -n database database-entries-scratch", `database-entries: sh -euc printf %s "$EXPAND"`, `database-entries: sh -euc printf %s "$CONTRACT"`, "database-entries: sh -euc read -r SEEN",
	} {
		i := strings.Index(did[at:], next)
		require.GreaterOrEqual(t, i, 0, "%s after that in:\n%s", next, did[at:])
		at += i + len(next)
	}
	require.Equal(t, "rows\n", read("restored"))
	kept, err := filepath.Glob(filepath.Join(seen, "backups", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 2, "a dump and its digest")

	pods := json.NewDecoder(strings.NewReader(read("objects")))
	want := load(t, major()).Data[0]
	live, scratch := want.Pods()
	for _, file := range []json.RawMessage{live, scratch} {
		var got any
		require.NoError(t, pods.Decode(&got))
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, strings.ReplaceAll(string(file), `"image":"postgresql"`, `"image":"slipway.local/postgresql@sha256:1"`), string(text))
	}

	for _, pod := range []string{"database-entries", "database-entries-scratch"} {
		_, out, err := run("BROKEN=" + pod)
		require.Error(t, err, out)
	}
	_, err = dataCommands(files, nil)
	require.ErrorContains(t, err, "the bundle lacks the image postgresql")
	_, err = dataCommands(os.DirFS(directory(minor())), images)
	require.ErrorContains(t, err, "has 0 data")
}
