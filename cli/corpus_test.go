package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestBrokenReleases validates every platform release of testdata/broken: what its author is
// told is in the golden beside it, which go test ./cli -update writes. One that has a
// slipway.yaml is validated with it.
func TestBrokenReleases(t *testing.T) {
	withoutImages(t)
	withBundle := []string{"image-not-there", "many"}
	entries, err := os.ReadDir("testdata/broken")
	require.NoError(t, err)
	releases, goldens := 0, 0
	for _, e := range entries {
		if !e.IsDir() {
			if filepath.Ext(e.Name()) == ".txt" {
				goldens++
			}
			continue
		}
		releases++
		t.Run(e.Name(), func(t *testing.T) {
			dir := "testdata/broken/" + e.Name()
			args := []string{"validate", "--platform", dir}
			if _, err := os.Stat(dir + "/slipway.yaml"); err == nil {
				args = append(args, "--config", dir+"/slipway.yaml")
			}
			from := ""
			for _, name := range withBundle {
				if name == e.Name() {
					from = wholeBundle(t)
					args = append(args, "--bundle", from)
				}
			}
			code, out, errs := slipway(args...)
			got := out + errs
			if from != "" {
				got = strings.ReplaceAll(got, from, "BUNDLE")
			}
			got += fmt.Sprintf("\nexit code %d\n", code)
			golden := dir + ".txt"
			if *rewrite {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
	require.Equal(t, releases, goldens, "a golden for each release, and no other")
}

// TestEveryFaultOfAReleaseIsAmongTheBroken, with its code.
func TestEveryFaultOfAReleaseIsAmongTheBroken(t *testing.T) {
	for name, codes := range map[string][]fault.Code{
		"cycle": {platform.CodeInvalid}, "missing-file": {platform.CodeInvalid}, "unknown-kind": {platform.CodeInvalid}, "namespace-not-there": {contract.CodeUnusable},
		"gate-on-nothing": {contract.CodeUnusable}, "image-not-there": {contract.CodeNoImage},
		"manifests": {contract.CodeUnusable}, "fields": {contract.CodeUnusable}, "charts": {contract.CodeUnusable}, "kinds": {contract.CodeUnusable, platform.CodeUnfit}, "apps": {contract.CodeUnusable}, "setting-not-given": {contract.CodeUnusable}, "tests": {contract.CodeUnusable},
		"many": {platform.CodeUnfit, contract.CodeUnusable, contract.CodeNoImage}, "only-the-cluster-knows": nil,
		"somebody-elses": nil, // only the cluster tells: see the test of this name in stages/infrastructure
	} {
		text, err := os.ReadFile("testdata/broken/" + name + ".txt")
		require.NoError(t, err)
		require.Equal(t, len(codes), strings.Count(string(text), "\nerror "), name)
		for _, code := range codes {
			require.Contains(t, string(text), "\nerror "+string(code)+": ", name)
		}
	}
}

// TestImagesOfABrokenReleaseAreNotAdded: what it lacks is not known.
func TestImagesOfABrokenReleaseAreNotAdded(t *testing.T) {
	for dir, says := range map[string]string{"manifests": "8 problems", "charts": "found in Chart.yaml, but missing in charts/ directory: redis"} {
		code, _, errs := slipway("bundle", "add", wholeBundle(t), "--platform", "testdata/broken/"+dir)
		require.Equal(t, int(fault.Usage), code)
		require.Contains(t, errs, "error PLT-017: ", "what it lacks is not known")
		require.Contains(t, errs, says)
	}
}
