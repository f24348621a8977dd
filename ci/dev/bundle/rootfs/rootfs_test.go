package rootfs

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
)

func TestSkip(t *testing.T) {
	skips := skip([]string{"usr/lib/*-linux-gnu/perl", "usr/bin/scalar"})
	for path, want := range map[string]bool{
		"var/cache/apt": true, "var/cache": false, "dev/null": true, "etc/passwd-": true, "etc/passwd": false,
		"usr/lib/x86_64-linux-gnu/perl": true, "usr/lib/x86_64-linux-gnu/perl-base": false, "usr/bin/scalar": true,
		"var/lib/dpkg/status-old": true, "var/lib/dpkg/status": false, "usr/share/doc/git/copyright": false,
	} {
		require.Equal(t, want, skips(path), path)
	}
}

// base is a layer that has a shell, this machine's busybox or bash with what it
// needs, instead of a Debian.
func base(t *testing.T, b *Builder) *Layer {
	t.Helper()
	key := build.NewInputs("bundle-base").String("test", t.Name()).Key()
	dir, hit, err := b.Store.Do(t.Context(), key, func(_ context.Context, dir string) error {
		files := filepath.Join(dir, filesDir)
		for _, name := range []string{
			"bin", "dev", "proc", "tmp", "run", "var/log", "var/cache", "etc/apt/sources.list.d", "usr/sbin", "root", "old",
		} {
			if err := os.MkdirAll(filepath.Join(files, name), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(files, "old/file"), []byte("lower"), 0o644); err != nil {
			return err
		}
		return exec.CommandContext(t.Context(), "sh", "-euc", `
			for program in sh mkdir rm ln; do
				at=$(command -v $program || true)
				[ -n "$at" ] || continue
				cp --parents -L "$at" "$1"
				ldd "$at" 2>/dev/null | grep -o '/[^ ]*' | while read -r lib; do cp --parents -L "$lib" "$1"; done
			done
			[ -e "$1/bin/sh" ] || ln -s /usr/bin/sh "$1/bin/sh"
			at=$(command -v apt-get || echo /usr/bin/apt-get)
			mkdir -p "$1$(dirname $at)"
			printf '#!/bin/sh\n' > "$1$at"
			chmod 755 "$1$at"
		`, "sh", files).Run()
	})
	require.NoError(t, err)
	_, err = oci.WriteLayer(t.Context(), dir, []oci.Tree{{Root: filepath.Join(dir, filesDir), Skip: skip(nil)}}, nil)
	require.NoError(t, err)
	layer, err := open(dir, key, nil, hit, nil)
	require.NoError(t, err)
	return layer
}

// builder skips the test unless this machine mounts overlays.
func builder(t *testing.T) *Builder {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("an overlay mount needs root")
	}
	if output, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %s", output)
	}
	st, err := build.OpenStore(t.TempDir())
	require.NoError(t, err)
	return &Builder{
		Store: st, Cache: t.TempDir(),
		Release: debian.Release{Codename: "bookworm", Sources: "deb http://nowhere.invalid bookworm main\n"},
	}
}

func TestALayerIsWhatTheOverlayCaught(t *testing.T) {
	b := builder(t)
	below := base(t, b)
	a := Addition{
		Name: "git", Packages: []string{"git"},
		Before: "mkdir /new; echo before > /new/file; rm /old/file",
		After:  "echo after > /new/trimmed; echo x > /var/cache/y",
		Trim:   []string{"new/trimmed"},
	}
	layer, err := b.Add(t.Context(), below, a)
	require.NoError(t, err)
	require.False(t, layer.Reused)
	require.Len(t, layer.Stack(), 2)

	names := map[string]string{}
	r, err := layer.Uncompressed()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		content, err := io.ReadAll(in)
		require.NoError(t, err)
		names[h.Name] = string(content)
	}
	require.Equal(t, "before\n", names["new/file"])
	require.Contains(t, names, "old/.wh.file")
	for _, name := range []string{"new/trimmed", "var/cache/y", "etc/resolv.conf", "usr/sbin/policy-rc.d", "etc/apt/sources.list.d/slipway.list"} {
		require.NotContains(t, names, name)
	}
	require.Equal(t, layer.File("new/file"), layer.Lookup("new/file"))
	require.Equal(t, below.File("bin/sh"), layer.Lookup("bin/sh"))

	again, err := b.Add(t.Context(), below, a)
	require.NoError(t, err)
	require.True(t, again.Reused)

	a.After = "false"
	_, err = b.Add(t.Context(), below, a)
	require.ErrorContains(t, err, "build the layer git: apt-get install git")
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), b.Store.Path())
}
