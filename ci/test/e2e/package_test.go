package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// signingKeys makes a pair of keys with openssl.
func signingKeys(t *testing.T) (private, public string) {
	t.Helper()
	private, public = filepath.Join(t.TempDir(), "key.pem"), filepath.Join(t.TempDir(), "key.pub.pem")
	for _, args := range [][]string{
		{"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private}, {"pkey", "-in", private, "-pubout", "-out", public},
	} {
		out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return private, public
}

// unpacked are the files of a package, by name.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	plain, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer plain.Close()
	out := map[string]string{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		out[h.Name] = string(text)
	}
}

// save packs the last run and returns the file.
func (k *kept) save(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.tar.zst")
	k.must(t, "save", append([]string{"--out", file}, args...)...)
	return file
}

// saved asserts that own.tar.zst in dir is a run that failed, signed with the key of the
// configuration, and packs it again, signed with another one, with the release that it
// had. It returns that package, and the files in it by what they are.
func (k *kept) saved(t *testing.T, dir, release, ownKey string) (file string, files map[string]string) {
	t.Helper()
	first := filepath.Join(dir, "own.tar.zst")
	own := unpacked(t, first)
	require.Contains(t, k.must(t, "save", "--verify", first, "--package-key", ownKey).out, "\nsigned with the key ")

	r := k.cli(t, "save", "--out", filepath.Join(dir, "other.tar.zst"))
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, "PKG-006", "the configuration names another release than --platform did")

	private, public := signingKeys(t)
	file = filepath.Join(dir, "signed.tar.zst")
	k.must(t, "save", "--out", file, "--platform", release, "--key", private)
	files = unpacked(t, file)
	for name, text := range own {
		if name != "index.json" && name != "index.sigstore.json" {
			require.Equal(t, text, files[name], "%s: the same run makes the same files", name)
		}
	}
	for _, name := range []string{
		"config.yaml", "images.json", "release/platform.yaml",
		"run/report.html", "run/report.json", "run/junit.xml", "run/summary.md", "run/state.yaml", "run/steps/orchestrator.sync/log.txt", "run/steps/orchestrator.sync/request.json",
	} {
		require.NotEmpty(t, files[name], name)
	}
	require.Equal(t, contents(t, release), below(files, "release/"))

	k.requireVerified(t, file, public)
	called := filepath.Join(dir, "called.tar.zst")
	d := k.deployment
	d.ok(t, "save", "--config", k.config, "--platform", release, "--key", "file:"+private, "export", "--path", called)
	d.Name = "" // no deployment has part in it
	require.Contains(t, d.ok(t, "verify-package", "--package-file", called, "--package-key", public).out, "signed with the key ")

	out := map[string]string{}
	for name, text := range files {
		out["the package's "+name] = text
	}
	return file, out
}

// below are the files of a directory, by their names in it.
func below(files map[string]string, dir string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		if rest, ok := strings.CutPrefix(name, dir); ok {
			out[rest] = text
		}
	}
	return out
}

// requireVerified asserts that a package is whole and signed with a key, and that this is
// seen of no other key, and of no other content.
func (k *kept) requireVerified(t *testing.T, file, public string) {
	t.Helper()
	verify := func(file string, args ...string) result {
		cmd := exec.CommandContext(t.Context(), filepath.Join(k.Bundle, "bin", "slipway"), append([]string{"save", "--verify", file}, args...)...)
		cmd.Env = []string{"HOME=/nonexistent", "PATH=/nonexistent"} // there is no engine to be found
		return finish(t, cmd)
	}
	r := verify(file, "--package-key", public)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "\nsigned with the key ")
	_, other := signingKeys(t)
	r = verify(file, "--package-key", other)
	require.Equal(t, 3, r.code, r.err)
	require.Contains(t, r.err, "PKG-003")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for at := 0; at < len(data); at += len(data)/40 + 1 {
		bad := bytes.Clone(data)
		bad[at] ^= 0x10
		altered := filepath.Join(t.TempDir(), "altered.tar.zst")
		require.NoError(t, os.WriteFile(altered, bad, 0o600))
		r := verify(altered)
		if r.code == 0 { // zstd may take a text that is there twice from the other place
			require.Equal(t, unpacked(t, file), unpacked(t, altered), "the byte at %d", at)
			continue
		}
		require.Contains(t, []int{2, 3}, r.code, "the byte at %d: %s", at, r.err)
		require.Regexp(t, `PKG-00[12]`, r.err)
	}
}

// installsFromItself asserts that an install from a package of the deployment's own changes
// nothing: configuration and release are the same.
func (k *kept) installsFromItself(t *testing.T) {
	t.Helper()
	r := finish(t, k.CLI(t.Context(), "install", "--package", k.save(t)))
	k.printed.add(r.out + r.err)
	require.Zero(t, r.code, slipway.Tail(r.err))
	require.Regexp(t, `(?m)^\s*orchestrator/sync\s+reused`, r.out)
}

// reproduces asserts that the run in a package, which failed in orchestrator/sync, fails the
// same way in the same step on a deployment of its own, and that the step's request is at hand.
func (d deployment) reproduces(t *testing.T, file string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Link(file, filepath.Join(dir, "run.tar.zst")))
	d.Name = ""
	r := finish(t, d.readme(t, dir, "slipway reproduce", "--", "cat", "/slipway/request.json"))
	d.printed.add(r.out + r.err)
	name := regexp.MustCompile(` as (repro-[0-9a-f]{8}), up to orchestrator/sync`).FindStringSubmatch(r.err)
	require.NotNil(t, name, slipway.Tail(r.err))
	d.Name = name[1]
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found")) })
	require.Zero(t, r.code, slipway.Tail(r.err))
	require.Regexp(t, `(?m)^reproduced: failed with ORC-\d+ in orchestrator/sync$`, r.out)
	drawn(t, "reproduce", "$ slipway reproduce --package run.tar.zst\n"+r.out[:strings.Index(r.out, "\n{")+1])
	require.Regexp(t, `"stage":"orchestrator","step":"sync".*"deployment":"`+d.Name+`"`, r.out, "what the command printed in the step's container")
}
