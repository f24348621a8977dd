package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// image packs a small Go tree and gives the layout's folder and its digest.
func image(t *testing.T, at time.Time) (dir, digest string) {
	t.Helper()
	goroot, base := t.TempDir(), filepath.Join(t.TempDir(), "root.tar")
	for name, mode := range map[string]os.FileMode{
		"bin/go": 0o755, "src/fmt/print.go": 0o600, "src/fmt/print_test.go": 0o644,
		"src/fmt/testdata/x": 0o644, "test/a.go": 0o644, "pkg/tool/compile": 0o711, "VERSION": 0o644,
	} {
		path := filepath.Join(goroot, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(name), mode))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, os.Symlink("../VERSION", filepath.Join(goroot, "src/link")))
	require.NoError(t, os.WriteFile(base, make([]byte, 1024), 0o644))
	codegen := filepath.Join(goroot, "bin/go")
	dir = t.TempDir()
	s := sdkImage{tar: base, codegen: codegen}
	require.NoError(t, s.make(t.Context(), dir, goroot, imageConfig(map[string]string{"GOSUMDB": "sum.golang.org", "GOPRIVATE": "example.com"})))
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	require.NoError(t, err)
	return dir, strings.TrimSpace(string(b))
}

func TestImageIsReproducible(t *testing.T) {
	_, one := image(t, time.Unix(1000, 0))
	_, two := image(t, time.Unix(2000, 0))
	require.Equal(t, one, two)
}

func TestImage(t *testing.T) {
	dir, digest := image(t, time.Now())
	blob := func(digest string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:")))
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		require.Equal(t, digest, "sha256:"+hex.EncodeToString(sum[:]))
		return b
	}
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct {
			Digest    string
			Size      int64
			MediaType string
		}
	}
	require.NoError(t, json.Unmarshal(blob(digest), &manifest))
	var config struct {
		Config struct{ Env, Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	require.NoError(t, json.Unmarshal(blob(manifest.Config.Digest), &config))
	require.Contains(t, config.Config.Env, "GOPATH=/go")
	require.Contains(t, config.Config.Env, "GOPRIVATE=example.com")
	require.NotContains(t, strings.Join(config.Config.Env, " "), "GOSUMDB", "the default")
	require.Len(t, manifest.Layers, 2)
	require.Equal(t, []string{manifest.Layers[0].Digest, manifest.Layers[1].Digest}, config.RootFS.DiffIDs)

	modes := map[string]int64{}
	layer := blob(manifest.Layers[1].Digest)
	require.EqualValues(t, manifest.Layers[1].Size, len(layer))
	for tr := tar.NewReader(strings.NewReader(string(layer))); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Zero(t, h.Uid+h.Gid)
		modes[h.Name] = h.Mode
	}
	for name, mode := range map[string]int64{
		"usr/local/go/bin/go": 0o755, "usr/local/go/pkg/tool/compile": 0o755, "usr/local/go/src/fmt/print.go": 0o644,
		"usr/local/go/src/link": 0o777, "usr/local/bin/codegen": 0o755, "go/bin/go": 0o755, "go/pkg/mod/": 0o755,
		"root/.cache/go-build/": 0o755, "root/": 0o700, "usr/sbin/.wh.update-ca-certificates": 0o644,
	} {
		got, ok := modes[name]
		require.True(t, ok, name)
		require.Equal(t, mode, got, name)
	}
	for name := range modes {
		require.False(t, strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata") || slices.Contains(strings.Split(name, "/"), "test"), name)
	}
}

// TestGoScript: what codegen of Dagger runs, and what else a module's author may.
func TestGoScript(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "real")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s|' \"$@\"\n"), 0o755))
	script := filepath.Join(dir, "go")
	require.NoError(t, os.WriteFile(script, []byte(strings.ReplaceAll(goScript, "/usr/local/go/bin/go", program)), 0o755))
	for args, want := range map[string]string{
		"get -u dagger.io/dagger@7058e931":                       "get|dagger.io/dagger@" + daggerVersion + "|",
		"get dagger.io/dagger@7058e931":                          "get|dagger.io/dagger@" + daggerVersion + "|",
		"get -u example.com/x@v1":                                "get|-u|example.com/x@v1|",
		"mod edit -replace dagger.io/dagger=dagger.io/dagger@v1": "mod|edit|-replace|dagger.io/dagger=dagger.io/dagger@v1|",
		"build -o x .":                                           "build|-o|x|.|",
	} {
		out, err := exec.CommandContext(t.Context(), script, strings.Fields(args)...).Output()
		require.NoError(t, err, args)
		require.Equal(t, want, string(out))
	}
}

func TestPackingStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	base := filepath.Join(t.TempDir(), "root.tar")
	require.NoError(t, os.WriteFile(base, make([]byte, 1024), 0o644))
	err := sdkImage{tar: base, codegen: base}.make(ctx, t.TempDir(), t.TempDir(), imageConfig(nil))
	require.ErrorIs(t, err, context.Canceled)
}
