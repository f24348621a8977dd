package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestRelease releases a commit with the files of this checkout: its lock
// file is of the bundle, and what `make release` makes is signed with the key. Without a tag it makes nothing.
func TestRelease(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	dir := committed(t, d.Root, "v9.9.9")
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir()))))
	t.Cleanup(server.Close)
	private, public := signingKeys(t)
	push := exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin/slipway"), "bundle", "push", d.Bundle, strings.TrimPrefix(server.URL, "http://")+"/team/slipway",
		"--out", filepath.Join(dir, "ci/slipway.lock.json"), "--key", private)
	pushed := finish(t, push)
	require.Zero(t, pushed.code, slipway.Tail(pushed.err))
	for _, args := range [][]string{
		{"add", "--force", "ci/slipway.lock.json", "ci/slipway.lock.json.sigstore.json"},
		{"-c", "user.name=Somebody", "-c", "user.email=a@example.com", "commit", "-q", "-m", "lock"}, {"tag", "--force", "v9.9.9"},
	} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = dir
		require.Zero(t, finish(t, git).code, args)
	}
	out := filepath.Join(t.TempDir(), "dist")
	release := func(version string) result {
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "make", "-s", "release", "VERSION="+version, "TARGETS="+runtime.GOOS+"/"+runtime.GOARCH,
			"OUT="+out, "KEY="+private)
		cmd.Dir = dir
		return finish(t, cmd)
	}
	r := release("v9.9.8")
	require.Contains(t, r.err, "has no tag v9.9.8", slipway.Tail(r.err))
	require.NoDirExists(t, out)
	r = release("v9.9.9")
	require.Zero(t, r.code, slipway.Tail(r.err))

	lock := read(t, out, "slipway.lock.json")
	require.Contains(t, lock, "/team/slipway")
	sums := exec.CommandContext(t.Context(), "sha256sum", "-c", "checksums.txt")
	sums.Dir = out
	checked := finish(t, sums)
	require.Zero(t, checked.code, checked.err)
	require.Contains(t, checked.out, "slipway.lock.json: OK\nslipway.lock.json.sigstore.json: OK\n")
	archive := "slipway_9.9.9_" + runtime.GOOS + "_" + runtime.GOARCH
	untar := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(out, archive+".tar.gz"))
	untar.Dir = t.TempDir()
	require.Zero(t, finish(t, untar).code)
	installed := filepath.Join(untar.Dir, archive, "slipway")
	r = finish(t, exec.CommandContext(t.Context(), installed, "version"))
	require.True(t, strings.HasPrefix(r.out, "slipway v9.9.9\n"), r.out+r.err)
	r = finish(t, exec.CommandContext(t.Context(), installed, "lock", "verify", "--bundle", d.Bundle))
	require.Zero(t, r.code, slipway.Tail(r.err))

	t.Run("cosign verifies both signatures", func(t *testing.T) {
		cosign, err := exec.LookPath("cosign")
		if err != nil {
			t.Skip("there is no cosign; make test-all builds it")
		}
		root := filepath.Join(t.TempDir(), "trusted_root.json")
		verify := func(key, signature, file string) int {
			cmd := exec.CommandContext(t.Context(), cosign, "verify-blob-attestation", "--key", key, "--insecure-ignore-tlog",
				"--trusted-root", root, "--bundle", signature, "--type", "slsaprovenance1", file)
			cmd.Dir, cmd.Env = out, append(os.Environ(), "HOME="+t.TempDir())
			r := finish(t, cmd)
			t.Log(r.err)
			return r.code
		}
		_, other := signingKeys(t)
		require.NoError(t, os.WriteFile(root, []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), 0o600)) // which version 2 wants
		require.Zero(t, verify(public, "slipway.lock.json.sigstore.json", "slipway.lock.json"))
		require.Zero(t, verify(public, "slipway_9.9.9.provenance.sigstore.json", archive+".tar.gz"))
		require.NotZero(t, verify(other, "slipway_9.9.9.provenance.sigstore.json", archive+".tar.gz"))
		require.NotZero(t, verify(public, "slipway_9.9.9.provenance.sigstore.json", "checksums.txt"), "it names no file but those in it")
	})
}

// committed is a repository with the files of a checkout, whatever is committed there, in one
// commit with this tag and a section of the changelog for it.
func committed(t *testing.T, checkout, tag string) string {
	t.Helper()
	dir := t.TempDir()
	git := func(in string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = in
		out, err := cmd.Output()
		require.NoError(t, err, args)
		return out
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(git(checkout, "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), []byte{0}) {
		from, to := filepath.Join(checkout, string(name)), filepath.Join(dir, string(name))
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is removed, and not yet committed so
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		if info.Mode().Type() == os.ModeSymlink {
			target, err := os.Readlink(from)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(target, to))
			continue
		}
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		if string(name) == "CHANGELOG.md" {
			text = bytes.Replace(text, []byte("\n## "), []byte("\n## "+strings.TrimPrefix(tag, "v")+"\n- It works.\n\n## "), 1)
		}
		require.NoError(t, os.WriteFile(to, text, info.Mode().Perm()))
	}
	git(dir, "init", "-q")
	git(dir, "add", ".")
	git(dir, "-c", "user.name=Somebody", "-c", "user.email=a@example.com", "commit", "-q", "-m", "all")
	git(dir, "tag", tag)
	return dir
}
