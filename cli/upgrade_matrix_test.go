package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/matrix"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

func TestAMatrixWithFailedCellsFails(t *testing.T) {
	dir := t.TempDir()
	o := matrixOptions{out: dir, set: pflag.NewFlagSet("", pflag.ContinueOnError)}
	o.add(o.set)
	require.NoError(t, o.set.Parse([]string{"--bundle=/b", "--lock=x y"}))
	require.Equal(t, []string{"--bundle=/b", "--lock=x y"}, o.given())
	good := matrix.Cell{From: "1.0.0", To: "1.1.0", Scale: 50, Style: "graceful", Faults: matrix.NoFault}
	bad := good
	bad.Style = "in-place"
	var out strings.Builder
	err := o.finish(t.Context(), console.Streams{Out: &out, Err: progress.Open(io.Discard, progress.Options{})}, []matrix.Result{
		{Cell: good, Outcome: matrix.Upgraded}, {Cell: bad, Outcome: matrix.Failed, Code: "CMP-001", Reason: "no"},
	})
	require.ErrorIs(t, err, &fault.Fault{Code: codeCellsFailed})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "1 of 2 cells failed: 1.0.0 to 1.1.0, scale 50, in-place")
	require.Contains(t, out.String(), "CMP-001 no\n")
	for _, file := range []string{"matrix.json", "junit.xml", "matrix.html"} {
		require.FileExists(t, filepath.Join(dir, file))
	}
}

func TestAMatrixThatCannotBeRunIsRefused(t *testing.T) {
	withoutImages(t)
	for args, says := range map[string]string{
		"--to 1.1.0":                             "give --from",
		"--from 1.0.0":                           "give --to",
		"--from 1.0.0 --to 1.0.0":                "name the same release",
		"--from 1.0.0 --to 1.1.0 --style brutal": `--style is "brutal"; give graceful or in-place`,
		"--from 1.0.0 --to 1.1.0 --faults some":  `--faults is "some"; give none or kill-at-each-step`,
		"--from 1.0.0 --to 1.1.0 --parallel 0":   "--parallel is 0",
		"--from 1.0.0 --to 1.1.0 --shard 4/3":    `--shard: "4/3" is no shard`,
		"--from 1.1.0 --to 1.0.0":                "PLT-021",
		"--from 1.0.0 --to 3.0.0":                "there is no release 3.0.0",
		"--from ./none --to 1.1.0":               "a platform release is a directory",
	} {
		dir := filepath.Join(t.TempDir(), "results")
		code, _, said := slipway(append([]string{"upgrade-matrix", "--out", dir}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, "%s: %s", args, said)
		require.Contains(t, said, says, args)
		_, err := os.Stat(dir)
		require.ErrorIs(t, err, os.ErrNotExist, args)
	}
}

// TestWhatAMatrixRunsWith: what came of it is not that of another program, other images or
// another content of a directory.
func TestWhatAMatrixRunsWith(t *testing.T) {
	withoutImages(t)
	dir, from := filepath.Join(t.TempDir(), "shop"), wholeBundle(t)
	code, _, said := slipway("platform", "init", dir)
	require.Zero(t, code, said)
	p := program()
	p.Source = "sha256:1"
	o := matrixOptions{program: &p, axes: matrix.Axes{From: []string{dir}, To: []string{"1.1.0"}}, set: pflag.NewFlagSet("", pflag.ContinueOnError)}
	o.add(o.set)
	cfg := config.Default()
	of := func(from string) string {
		t.Helper()
		inputs, err := o.inputs(t.Context(), cfg)
		require.NoError(t, err)
		return inputs(matrix.Cell{From: from, To: "1.1.0"})
	}
	_, err := o.inputs(t.Context(), cfg)
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
		o := matrixOptions{axes: matrix.Axes{From: []string{"1.0.0"}, To: []string{"./shop"}, Styles: []string{"graceful"}, Faults: []string{matrix.NoFault}}}
		_, err := o.cells(cfg)
		require.ErrorContains(t, err, "the configuration has a release of your own, "+own+", and a version such as 1.0.0 is one of the reference platform; name directories")
		o.axes.From = []string{"./before"}
		cells, err := o.cells(cfg)
		require.NoError(t, err)
		require.Len(t, cells, 1)
	}
}
