package matrix

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

func TestAMatrixWithFailedCellsFails(t *testing.T) {
	dir := t.TempDir()
	o := options{out: dir, set: pflag.NewFlagSet("", pflag.ContinueOnError)}
	o.add(o.set)
	require.NoError(t, o.set.Parse([]string{"--bundle=/b", "--lock=x y"}))
	require.Equal(t, []string{"--bundle=/b", "--lock=x y"}, o.given())
	good := Cell{From: "1.0.0", To: "1.1.0", Scale: 50, Style: "graceful", Faults: NoFault}
	bad := good
	bad.Style = "in-place"
	var out strings.Builder
	err := o.finish(t.Context(), console.Streams{Out: &out, Err: progress.Open(io.Discard, progress.Options{})}, []Result{
		{Cell: good, Outcome: Upgraded}, {Cell: bad, Outcome: Failed, Code: "CMP-001", Reason: "no"},
	})
	require.ErrorIs(t, err, &fault.Fault{Code: codeCellsFailed})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "1 of 2 cells failed: 1.0.0 to 1.1.0, scale 50, in-place")
	require.Contains(t, out.String(), "CMP-001 no\n")
	for _, file := range []string{"matrix.json", "junit.xml", "matrix.html"} {
		require.FileExists(t, filepath.Join(dir, file))
	}
}

// TestWhatAMatrixRunsWith: what came of it is not that of another program, other images or
// another content of a directory.
func TestWhatAMatrixRunsWith(t *testing.T) {
	for _, name := range []string{"SLIPWAY_BUNDLE", "SLIPWAY_LOCK", "SLIPWAY_BUNDLE_DIGEST"} {
		t.Setenv(name, "")
	}
	dir, from := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform.yaml"), []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: manifests, path: web, namespace: shop}]\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "web"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web", "web.yaml"), []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n"), 0o600))
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("images")))
	text, err := bundle.Index{
		Version: bundle.Format, Platform: "linux/amd64",
		Files: []bundle.File{{Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, Version: "1", Origin: "images", SHA256: sum, Size: 6}},
	}.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(from, bundle.IndexFile), text, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(from, "images"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(from, bundle.WorkloadArchive), []byte("images"), 0o600))
	p := source.Program{Source: "sha256:1"}
	o := options{source: source.Source{Program: &p}, axes: Axes{From: []string{dir}, To: []string{"1.1.0"}}, set: pflag.NewFlagSet("", pflag.ContinueOnError)}
	o.add(o.set)
	cfg := config.Default()
	of := func(from string) string {
		t.Helper()
		inputs, err := o.inputs(t.Context(), cfg)
		require.NoError(t, err)
		return inputs(Cell{From: from, To: "1.1.0"})
	}
	_, err = o.inputs(t.Context(), cfg)
	require.ErrorIs(t, err, &fault.Fault{Code: "BUN-006"})
	require.NoError(t, o.set.Parse([]string{"--bundle", from}))
	_, err = o.inputs(t.Context(), cfg)
	require.ErrorIs(t, err, &fault.Fault{Code: "BUN-007"})
	require.NoError(t, o.set.Parse([]string{"--bundle-digest", "none"}))
	first, other := of(dir), of("1.0.0")
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", first)
	require.Equal(t, first, of(dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "more"), nil, 0o600))
	require.NotEqual(t, first, of(dir), "another release")
	require.Equal(t, other, of("1.0.0"), "which is not of this cell")
	index, err := os.ReadFile(filepath.Join(from, "bundle.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(from, "bundle.json"), append(index, '\n'), 0o600))
	require.NotEqual(t, other, of("1.0.0"), "another bundle")
	other = of("1.0.0")
	cfg.Global.Scale = 100
	require.NotEqual(t, other, of("1.0.0"), "another configuration")
	other = of("1.0.0")
	p.Source = "sha256:2"
	require.NotEqual(t, other, of("1.0.0"), "another program")
}

// TestVersionsOfAReleaseOfOnesOwn are not taken for those of the reference platform.
func TestVersionsOfAReleaseOfOnesOwn(t *testing.T) {
	for _, own := range []string{"./shop", "https://git.example.com/shop.git@v1.0.0"} {
		cfg := &config.Config{Platform: config.Platform{Release: own}}
		o := options{axes: Axes{From: []string{"1.0.0"}, To: []string{"./shop"}, Styles: []string{"graceful"}, Faults: []string{NoFault}}}
		_, err := o.cells(cfg)
		require.ErrorContains(t, err, "the configuration has a release of your own, "+own+", and a version such as 1.0.0 is one of the reference platform; name directories")
		o.axes.From = []string{"./before"}
		cells, err := o.cells(cfg)
		require.NoError(t, err)
		require.Len(t, cells, 1)
	}
}
