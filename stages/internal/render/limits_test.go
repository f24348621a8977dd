package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"

	"github.com/slipway-sh/slipway/bounded"
)

// turning takes seconds, and no memory.
const turning = `{{ range until 9000 }}{{ range until 9000 }}{{ end }}{{ end }}`

// endless is a chart with a template.
func endless(t *testing.T, template string) *chart.Chart {
	t.Helper()
	ch, err := loader.LoadFiles([]*loader.BufferedFile{
		{Name: "Chart.yaml", Data: []byte("{apiVersion: v2, name: web, version: 1.0.0}")},
		{Name: "templates/a.yaml", Data: []byte(template)},
	})
	require.NoError(t, err)
	return ch
}

func options() ChartOptions {
	return ChartOptions{Release: "web", Namespace: "shop", Values: map[string]any{}, Kubernetes: &chartutil.DefaultCapabilities.KubeVersion}
}

func TestWhatDoesNotEndIsAbandoned(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		limits   bounded.Limits
		wants    string
	}{
		"time":   {turning, bounded.Limits{Time: 200 * time.Millisecond, Memory: 1 << 40}, "rendering was stopped: it takes longer than 200ms"},
		"memory": {`{{ $x := repeat 200000000 "a" }}` + turning + `{{ len $x }}`, bounded.Limits{Time: time.Hour, Memory: 64 << 20}, "rendering was stopped: it takes more than 64 MiB of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			ch := endless(t, c.template)
			_, err := bounded.Work(t.Context(), c.limits, func() (*release.Release, error) {
				return Chart(context.WithoutCancel(t.Context()), ch, options())
			})
			require.ErrorIs(t, err, bounded.ErrAbandoned)
			require.EqualError(t, err, c.wants)
		})
	}
}

// What renders ends with its context: each entry of the package.
func TestRenderingEndsWithItsContext(t *testing.T) {
	interrupt := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
	_, err := Chart(ctx, endless(t, turning), options())
	require.ErrorIs(t, err, interrupt)
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(interrupt)
	_, err = LoadChart(ended, fstest.MapFS{}, ".")
	require.ErrorIs(t, err, interrupt)
	_, err = kustomize(ended, fstest.MapFS{}, ".")
	require.ErrorIs(t, err, interrupt)
}

// Helm itself ends templates that include themselves.
func TestATemplateThatIncludesItself(t *testing.T) {
	_, err := Chart(t.Context(), endless(t, `{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}`), options())
	require.ErrorContains(t, err, "nested reference")
}

func TestLoadChartReadsRegularFilesOfLimitedSize(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string)
		wants   string // empty: it can be read
	}{
		"a chart":      {func(*testing.T, string) {}, ""},
		"a large file": {func(t *testing.T, dir string) { sparse(t, filepath.Join(dir, "disk.img"), 1<<40) }, "cannot load disk.img: it is larger than the 5 MiB that Helm takes"},
		"a large file that is no part of it": {func(t *testing.T, dir string) {
			sparse(t, filepath.Join(dir, "disk.img"), 1<<40)
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".helmignore"), []byte("*.img\n"), 0o600))
		}, ""},
		"a large list of what is no part of it": {func(t *testing.T, dir string) { sparse(t, filepath.Join(dir, ".helmignore"), 1<<40) }, "cannot load .helmignore: it is larger than the 5 MiB that Helm takes"},
		"many files": {func(t *testing.T, dir string) {
			for i := range 20 {
				sparse(t, filepath.Join(dir, fmt.Sprint(i)), 4<<20)
			}
		}, "the files of the chart are larger than 64 MiB together"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := aChart(t)
			c.prepare(t, dir)
			ch, err := LoadChart(t.Context(), os.DirFS(dir), ".")
			if c.wants != "" {
				require.ErrorContains(t, err, c.wants)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "web", ch.Name())
		})
	}
}

// Helm hashes and renders the files in the order in which it walks a directory.
func TestLoadChartReadsWhatHelmReads(t *testing.T) {
	dir := aChart(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".helmignore"), []byte("# what is not read\nnot/\n*.bak\n"), 0o600))
	for _, name := range []string{"a/b.txt", "a.txt", "a-b", "not/this.txt", "values.bak", "templates/.hidden", "charts/sub/Chart.yaml", "crds/c.yaml"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("\ufeff{apiVersion: v2, name: sub, version: 1.0.0}"), 0o600))
	}
	want, err := loader.LoadDir(dir)
	require.NoError(t, err)
	got, err := LoadChart(t.Context(), os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// aChart is the directory of a chart.
func aChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "templates"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte("{apiVersion: v2, name: web, version: 1.0.0}"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "templates", "a.yaml"), []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), 0o600))
	return dir
}

// sparse is a file that has a size, and takes no room.
func sparse(t *testing.T, file string, size int64) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, size))
}

// TestNamesInPackedCharts that could pass for other text: Slipway prints where an object is from.
func TestNamesInPackedCharts(t *testing.T) {
	packed := func(name string) []byte {
		var b bytes.Buffer
		zipped := gzip.NewWriter(&b)
		w := tar.NewWriter(zipped)
		for file, text := range map[string]string{"Chart.yaml": "{apiVersion: v2, name: s, version: 1.0.0}", name: ""} {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: "s/" + file, Mode: 0o644, Size: int64(len(text))}))
			_, err := w.Write([]byte(text))
			require.NoError(t, err)
		}
		require.NoError(t, errors.Join(w.Close(), zipped.Close()))
		return b.Bytes()
	}
	for name, wants := range map[string]string{
		"crds/a.yaml":               "",
		"crds/a\n---\nkind: b.yaml": `chart s: "crds/a\n---\nkind: b.yaml": its name has a character that cannot be printed`,
		"templates/\x1b[31m.yaml":   `chart s: "templates/\x1b[31m.yaml": its name has a character that cannot be printed`,
	} {
		_, err := LoadChart(t.Context(), fstest.MapFS{
			"web/Chart.yaml":   {Data: []byte("{apiVersion: v2, name: web, version: 1.0.0}")},
			"web/charts/s.tgz": {Data: packed(name)},
		}, "web")
		if wants == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, wants)
	}
}
