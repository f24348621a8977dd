package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

// lockFile writes a lock as bundle push does.
func lockFile(t *testing.T, location string) string {
	t.Helper()
	pins, err := lock.Load()
	require.NoError(t, err)
	entry := lock.Registry{Ref: "r", Digest: "sha256:" + strings.Repeat("a", 64), Pushed: "sha256:" + strings.Repeat("b", 64)}
	all := map[string]lock.Registry{}
	for _, i := range pins.Images {
		all[i.Name] = entry
	}
	pins, err = pins.At(location, "linux/amd64", all, entry, nil)
	require.NoError(t, err)
	text, err := pins.Marshal()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "slipway.lock.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

// What is wrong with the place of the images is said before the engine is asked.
func TestWhereImagesComeFrom(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
	broken := filepath.Join(t.TempDir(), "lock")
	require.NoError(t, os.WriteFile(broken, []byte(`{"version":1,"colour":"red"}`), 0o644))
	for what, c := range map[string]struct {
		args []string
		says []string
	}{
		"neither":            {nil, []string{"BUN-006", "--bundle DIR", "--lock FILE"}},
		"both":               {[]string{"--bundle", "x", "--lock", "y"}, []string{"either --lock or --bundle"}},
		"registry alone":     {[]string{"--bundle", "x", "--registry", "r.example.com"}, []string{"REG-012", "--registry goes with --lock"}},
		"no such lock":       {[]string{"--lock", "/does/not/exist"}, []string{"LCK-003", "bundle push"}},
		"not a lock":         {[]string{"--lock", broken}, []string{"LCK-003", "colour"}},
		"no registry at all": {[]string{"--lock", lockFile(t, "")}, []string{"REG-010", "--registry host/path"}},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway(append([]string{"status"}, c.args...)...)
			require.Equal(t, 2, code, errs)
			for _, s := range c.says {
				require.Contains(t, errs, s)
			}
		})
	}
}

// A bundle that is not there is the same failure for every command, before the
// engine is asked; ci/origin has the one of a call of the module.
func TestABundleThatIsNotThere(t *testing.T) {
	t.Setenv("SLIPWAY_LOCK", "")
	empty, damaged := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(damaged, bundle.IndexFile), []byte("{"), 0o600))
	for dir, code := range map[string]fault.Code{
		filepath.Join(empty, "none"): bundle.CodeAbsent, empty: bundle.CodeAbsent, damaged: bundle.CodeIndex,
	} {
		for _, args := range [][]string{{"install", "--bundle", dir}, {"status", "--bundle", dir}, {"bundle", "verify", dir}, {"lock", "verify", "--bundle", dir}} {
			exit, _, errs := slipway(args...)
			require.Equal(t, 3, exit, errs)
			require.Contains(t, errs, "error "+string(code)+": ", args)
			require.Contains(t, errs, "make bundle")
		}
	}
}

func TestBundlePushUsage(t *testing.T) {
	code, _, errs := slipway("bundle", "push", "dir")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--to")
	code, _, errs = slipway("bundle", "push", t.TempDir(), "--to", "127.0.0.1:1/x")
	require.Equal(t, 3, code)
	require.Contains(t, errs, "BUN-001")
	code, out, _ := slipway("bundle", "push", "--help")
	require.Zero(t, code)
	for _, flag := range []string{"push DIR --to", "--to string", "--lock-out", "--plain-http"} {
		require.Contains(t, out, flag)
	}
}
