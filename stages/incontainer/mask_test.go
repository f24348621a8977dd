//go:build linux

package incontainer_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/incontainer"
)

// masked runs a script, with a secret TOKEN.
func masked(t *testing.T, m incontainer.Mask, command ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errw strings.Builder
	code, err := m.Run(command, &out, &errw)
	require.NoError(t, err)
	return code, out.String(), errw.String()
}

func TestWhatACommandPrintsHasNoSecretInAnyForm(t *testing.T) {
	const key = "a key of the administrator's"
	t.Setenv("TOKEN", "correct-horse & battery-staple")
	t.Setenv("PLAIN", "nothing of importance")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	encoded := base64.StdEncoding.EncodeToString([]byte(key))
	require.NoError(t, os.WriteFile(file, []byte("users: [{name: admin, user: {client-key-data: "+encoded+"}}]\n"), 0o600))
	code, out, errw := masked(t, incontainer.Mask{Secrets: []string{"TOKEN"}, Kubeconfig: file}, "sh", "-c", `
echo "token $TOKEN, $PLAIN"
echo "base64 $(printf %s "$TOKEN" | base64)"
echo "twice $(printf %s "$TOKEN" | base64 -w 0 | base64 -w 20)"
echo "hexadecimal $(printf %s "$TOKEN" | od -An -tx1 -v | tr -d ' \n')"
echo "HTML $(printf %s "$TOKEN" | sed 's/&/\&amp;/')"
printf 'split %s\n%s\n' "correct-horse & ba" "ttery-staple"
echo "key `+encoded+`, `+key+`" >&2
printf 'no end %s' "$TOKEN"
exit 3`)
	require.Equal(t, 3, code)
	require.Equal(t, "token ***, nothing of importance\nbase64 ***\ntwice ***A==\nhexadecimal ***\nHTML ***\nsplit ***\nno end ***\n", out)
	require.Equal(t, "key ***, ***\n", errw)
}

func TestACommandEndsAsInAShell(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("echo\n"), 0o600))
	for name, c := range map[string]struct {
		command []string
		want    int
		says    string
	}{
		"well":          {[]string{"true"}, 0, ""},
		"by a signal":   {[]string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		"not found":     {[]string{"no-such-command"}, 127, "executable file not found in $PATH"},
		"no such file":  {[]string{filepath.Join(t.TempDir(), "gone")}, 127, "no such file or directory"},
		"no permission": {[]string{plain}, 126, "permission denied"},
	} {
		code, _, stderr := masked(t, incontainer.Mask{}, c.command...)
		require.Equal(t, c.want, code, name)
		require.Contains(t, stderr, c.says, name)
	}
	_, err := incontainer.Mask{Kubeconfig: filepath.Join(t.TempDir(), "gone")}.Run([]string{"true"}, os.Stdout, os.Stderr)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing runs whose secrets are not known")
}

// TestACommandIsOverWhatItHasStartedIsNot: what a command leaves running keeps what it writes
// to open.
func TestACommandIsOverWhatItHasStartedIsNot(t *testing.T) {
	began := time.Now()
	code, out, _ := masked(t, incontainer.Mask{}, "sh", "-c", "echo done; sleep 20 &")
	require.Equal(t, 0, code)
	require.Equal(t, "done\n", out)
	require.Less(t, time.Since(began), 15*time.Second)
}
