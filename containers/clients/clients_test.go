package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// made is a bundle for linux/amd64 with these tools.
func made(t *testing.T, tools map[string]string) *bundle.Bundle {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	x := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for name, text := range tools {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte(text), 0o755))
		x.Files = append(x.Files, bundle.File{Path: "bin/" + name, Name: name, Kind: bundle.Tool, Version: "1", SHA256: bundle.SumOf([]byte(text)), Size: int64(len(text))})
	}
	text, err := x.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	return b
}

func all() map[string]string {
	return map[string]string{"slipway": "s", "kubectl": "k", "helm": "h", "terraform": "t"}
}

// files are the clients in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := map[string]string{}
	for _, e := range entries {
		if e.Name() == RecordFile {
			continue
		}
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm()|0o055, "%s is executable", e.Name())
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(text)
	}
	return out
}

func TestClientsOutOfABundle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bin")
	o := Options{Dir: dir, Platform: "linux/amd64", Pins: &lock.Lock{}, Bundle: made(t, all())}
	put, err := Put(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, Client{Name: "slipway", Version: "1", From: "the bundle"}, put[0])
	require.Equal(t, all(), files(t, dir))

	before, err := os.Stat(filepath.Join(dir, "helm"))
	require.NoError(t, err)
	put, err = Put(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, put, 4)
	for _, c := range put {
		require.True(t, c.There, c.Name)
	}
	after, err := os.Stat(filepath.Join(dir, "helm"))
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.Equal(t, all(), files(t, dir))

	newer := all()
	newer["helm"] = "h2"
	o.Bundle = made(t, newer)
	put, err = Put(t.Context(), o)
	require.NoError(t, err)
	require.False(t, put[2].There)
	require.Equal(t, newer, files(t, dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte("mine"), 0o755))
	require.NoError(t, os.Remove(filepath.Join(dir, "helm")))
	_, err = Put(t.Context(), o)
	require.ErrorIs(t, err, &fault.Fault{Code: atomicfile.CodeUnwritten})
	require.ErrorContains(t, err, filepath.Join(dir, "kubectl")+" is another program")
	require.NoFileExists(t, filepath.Join(dir, "helm"), "nothing was written")
}

func TestADamagedBundleIsNotTaken(t *testing.T) {
	b := made(t, all())
	require.NoError(t, os.WriteFile(b.Path("bin/helm"), []byte("forged"), 0o755))
	dir := t.TempDir()
	_, err := Put(t.Context(), Options{Dir: dir, Platform: "linux/amd64", Pins: &lock.Lock{}, Bundle: b})
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent})
	require.NoFileExists(t, filepath.Join(dir, "helm"))
}

// released are archives as vendors have them, and a site that gives them.
func released(t *testing.T) (pins *lock.Lock, client *http.Client, asked *int) {
	t.Helper()
	var zipped, tarred bytes.Buffer
	z := zip.NewWriter(&zipped)
	for _, name := range []string{"LICENSE.txt", "terraform"} {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = w.Write([]byte("t " + name))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	g := gzip.NewWriter(&tarred)
	w := tar.NewWriter(g)
	for _, name := range []string{"darwin-arm64/LICENSE", "darwin-arm64/helm"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: 1}))
		_, err := w.Write([]byte("h"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, g.Close())
	archives, asked := map[string][]byte{"/t.zip": zipped.Bytes(), "/h.tar.gz": tarred.Bytes()}, new(int)
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		if data, ok := archives[r.URL.Path]; ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(site.Close)
	tool := func(name, file string) lock.Tool {
		return lock.Tool{Name: name, Version: "3", Release: map[string]lock.Release{
			"darwin/arm64": {URL: site.URL + file, SHA256: bundle.SumOf(archives[file])},
		}}
	}
	return &lock.Lock{Tools: []lock.Tool{tool("terraform", "/t.zip"), tool("helm", "/h.tar.gz"), {Name: "kubectl", Version: "1.35.4"}}}, site.Client(), asked
}

func TestClientsAsTheirVendorsReleasedThem(t *testing.T) {
	pins, client, asked := released(t)
	own := filepath.Join(t.TempDir(), "me")
	require.NoError(t, os.WriteFile(own, []byte("s"), 0o755))
	o := Options{Dir: t.TempDir(), Platform: "darwin/arm64", Pins: pins, Bundle: made(t, all()), Program: own, Client: client}
	for range 2 {
		put, err := Put(t.Context(), o)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeFetch})
		require.Equal(t, fault.Preflight, fault.ClassOf(err))
		require.ErrorContains(t, err, "kubectl: neither a bundle nor the lock has 1.35.4 for darwin/arm64")
		require.NotContains(t, err.Error(), "helm")
		require.Len(t, put, 3, "the others are put")
		require.Equal(t, map[string]string{"slipway": "s", "helm": "h", "terraform": "t terraform"}, files(t, o.Dir))
	}
	require.Equal(t, 2, *asked, "the second time nothing is fetched")
}

func TestAReleaseThatIsNotTheLocks(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*lock.Release)
		says   string
	}{
		"other content": {func(r *lock.Release) { r.SHA256 = strings.Repeat("a", 64) }, "the lock says " + strings.Repeat("a", 64)},
		"gone":          {func(r *lock.Release) { r.URL += ".no" }, "the site answers 404 Not Found"},
		"nobody there":  {func(r *lock.Release) { r.URL = "https://127.0.0.1:1/t.zip" }, "127.0.0.1:1"},
	} {
		t.Run(what, func(t *testing.T) {
			pins, client, _ := released(t)
			pins.Tools = pins.Tools[:1]
			r := pins.Tools[0].Release["darwin/arm64"]
			c.change(&r)
			pins.Tools[0].Release["darwin/arm64"] = r
			dir := t.TempDir()
			_, err := Put(t.Context(), Options{Dir: dir, Platform: "darwin/arm64", Pins: pins, Client: client})
			require.ErrorIs(t, err, &fault.Fault{Code: CodeFetch})
			require.ErrorContains(t, err, c.says)
			require.Empty(t, files(t, dir))
		})
	}
	pins, client, _ := released(t)
	r := pins.Tools[1].Release["darwin/arm64"]
	r.URL += ".no"
	pins.Tools[1].Release["darwin/arm64"] = r
	dir := t.TempDir()
	put, err := Put(t.Context(), Options{Dir: dir, Platform: "darwin/arm64", Pins: pins, Client: client})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFetch})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFetch})
	require.ErrorContains(t, err, "404")
	require.ErrorContains(t, err, "kubectl: neither")
	require.Len(t, put, 1)
	require.Equal(t, map[string]string{"terraform": "t terraform"}, files(t, dir), "the others are put")

	pins, client, _ = released(t)
	pins.Tools = pins.Tools[1:2]
	pins.Tools[0].Name = "kubectl" // which is not in helm's archive
	_, err = Put(t.Context(), Options{Dir: t.TempDir(), Platform: "darwin/arm64", Pins: pins, Client: client})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFetch})
	require.ErrorContains(t, err, "it holds no kubectl")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Put(ctx, Options{Dir: t.TempDir(), Platform: "linux/amd64", Pins: &lock.Lock{}, Bundle: made(t, all())})
	require.ErrorIs(t, err, context.Canceled)
}

func TestAFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	o := Options{Dir: file, Platform: "linux/amd64", Pins: &lock.Lock{}, Bundle: made(t, all())}
	_, err := Put(t.Context(), o)
	require.ErrorIs(t, err, &fault.Fault{Code: atomicfile.CodeUnwritten})

	o.Dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(o.Dir, RecordFile), []byte("{"), 0o644))
	_, err = Put(t.Context(), o)
	require.ErrorIs(t, err, &fault.Fault{Code: atomicfile.CodeUnwritten})
	require.ErrorContains(t, err, RecordFile)
}

// TestAnInterruptedPutGoesOn: one that is killed after the record and before the program leaves
// nothing that the next one takes for somebody else's.
func TestAnInterruptedPutGoesOn(t *testing.T) {
	o := Options{Dir: t.TempDir(), Platform: "linux/amd64", Pins: &lock.Lock{}, Bundle: made(t, all())}
	_, err := Put(t.Context(), o)
	require.NoError(t, err)
	helm := filepath.Join(o.Dir, "helm")
	for _, text := range []string{"h2", "h3"} {
		newer := all()
		newer["helm"] = text
		o.Bundle = made(t, newer)
		was, err := os.ReadFile(helm)
		require.NoError(t, err)
		_, err = Put(t.Context(), o)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(helm, was, 0o755)) // as if it had not come so far
		put, err := Put(t.Context(), o)
		require.NoError(t, err)
		require.False(t, put[2].There)
		require.Equal(t, newer, files(t, o.Dir))
	}
}
