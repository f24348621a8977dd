package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// What is wrong with a lock.yaml that the user names is the user's to correct.
func TestLockUpdateOfAWrongFile(t *testing.T) {
	for what, c := range map[string]struct {
		text string
		says []string
	}{
		"no lock":      {"- one\n", []string{"LCK-003"}},
		"unknown keys": {"version: 1\ncolour: red\n", []string{"LCK-003", "colour"}},
		"problems":     {"version: 1\nimages: [{name: A, version: v1}]\n", []string{"LCK-003", `"A" is no name`, `"v1" is no version`, "suite: is required"}},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "my-lock.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o644))
			code, _, errs := slipway("lock", "update", "--file", file)
			require.Equal(t, 2, code, errs)
			for _, s := range append(c.says, "read "+file, "remedy: correct the file") {
				require.Contains(t, errs, s)
			}
			require.NotContains(t, errs, "git checkout")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.text, string(text), "left as it was")
		})
	}
	code, _, errs := slipway("lock", "update", "--file", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "LCK-003")
}

// Everything that is not as the lock says is named at once.
func TestLockVerifyNamesWhatDiffers(t *testing.T) {
	dir := smallBundle(t) // whose index names images that its archive does not hold
	code, _, errs := slipway("lock", "verify", "--bundle", dir)
	require.Equal(t, 3, code, errs)
	for _, says := range []string{
		"LCK-006", "compare this program with the bundle's: the bundle has none",
		"BUN-005", "tool terraform: is not in the bundle",
		"LCK-005", "image redis: ",
	} {
		require.Contains(t, errs, says)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "extra"), nil, 0o644))
	_, _, errs = slipway("lock", "verify", "--bundle", dir)
	require.Contains(t, errs, "BUN-003")
	require.Contains(t, errs, "extra is not in the index")
}

func TestLockVerifyComparesTheProgram(t *testing.T) {
	of := func(origin string) *bundle.Bundle {
		return &bundle.Bundle{Index: bundle.Index{Files: []bundle.File{{Name: "slipway", Kind: bundle.Tool, Origin: origin}}}}
	}
	o := lockVerifyOptions{program: &Program{Source: "sha256:a"}}
	require.NoError(t, o.same(of("source:sha256:a")))
	require.ErrorContains(t, o.same(of("source:sha256:b")), "its sources are sha256:a, those of the bundle's program sha256:b")
	o.program.Source = ""
	for _, origin := range []string{"source:sha256:a", "source:"} {
		err := o.same(of(origin))
		require.ErrorIs(t, err, &fault.Fault{Code: codeProgram})
		require.ErrorContains(t, err, "does not know its sources")
	}
}
