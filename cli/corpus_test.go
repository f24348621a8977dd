package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
	providers "github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/conductor"
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
		"cycle": {platform.CodeInvalid}, "missing-file": {platform.CodeInvalid}, "unknown-kind": {platform.CodeInvalid}, "namespace-not-there": {codeUnusable},
		"gate-on-nothing": {codeUnreached, codeUnmade}, "image-not-there": {codeLacking},
		"manifests": {codeUnusable}, "charts": {codeUnusable}, "kinds": {codeUnusable, platform.CodeNoGit}, "apps": {codeUnusable}, "setting-not-given": {codeUnusable}, "tests": {codeUnusable},
		"many": {platform.CodeGiven, codeUnusable, codeLacking, codeUnreached}, "only-the-cluster-knows": nil,
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

// TestInstallReadsTheReleaseFirst: what validate says of its files, an install says before
// anything starts.
func TestInstallReadsTheReleaseFirst(t *testing.T) {
	for dir, says := range map[string]string{"manifests": "8 problems", "charts": "12 problems", "namespace-not-there": "the Deployment a is in the namespace elsewhere", "only-the-cluster-knows": ""} {
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"), providers.All().Options())
		require.NoError(t, err)
		r, err := platform.Load(os.DirFS("testdata/broken/" + dir))
		require.NoError(t, err)
		b, err := bundle.Read(wholeBundle(t))
		require.NoError(t, err)
		p := program()
		provider, err := p.Providers.Get(cfg.Provider)
		require.NoError(t, err)
		o := installOptions{program: &p}
		var told bytes.Buffer
		err = o.checkImages(t.Context(), console.Streams{Err: progress.Open(&told, progress.Options{})}, &conductor.Options{Config: cfg, Provider: provider, Release: r, Images: containers.Describe(b)})
		if says == "" {
			require.NoError(t, err)
			require.Contains(t, told.String(), "the images of asks are not known before it is installed: ")
			continue
		}
		require.ErrorIs(t, err, &fault.Fault{Code: codeUnusable})
		require.ErrorContains(t, err, says)
	}
	for dir, says := range map[string]string{"manifests": "8 problems", "charts": "found in Chart.yaml, but missing in charts/ directory: redis"} {
		code, _, errs := slipway("bundle", "add", wholeBundle(t), "--missing", "--platform", "testdata/broken/"+dir)
		require.Equal(t, int(fault.Usage), code)
		require.Contains(t, errs, "error PLT-017: ", "what it lacks is not known")
		require.Contains(t, errs, says)
	}
}
