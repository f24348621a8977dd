package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
)

// TestForgedBundle: of a bundle that agrees with its own index, and is not the one that was
// built, nothing runs; nor of an archive that is not the one of the index. The program and
// the digest are those of the bundle that was built.
//
// It runs alone, as TestWrongBundleFileIsNamed does: Dagger v0.20.8 knows files by what is in
// them, and one that two sessions upload from two folders it may look for in the folder of the
// other, where a function of a module finds nothing.
func TestForgedBundle(t *testing.T) {
	d := open(t, "e2e-forged")
	wanted, forged := indexDigest(t, d.Bundle), forgedBundle(t, d.Bundle)
	itself, err := bundle.Read(forged)
	require.NoError(t, err)
	require.NoError(t, itself.Verify(t.Context()), "it agrees with itself")
	digest := indexDigest(t, forged)
	is := "it is " + digest
	refused := func(t *testing.T, r result, code string, says ...string) {
		t.Helper()
		if r.code == 0 {
			t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found")) })
		}
		require.Equal(t, 3, r.code, slipway.Tail(r.out+r.err))
		for _, s := range append(says, code) {
			require.Contains(t, r.err, s)
		}
		require.NotContains(t, r.err, "infrastructure/", "no step started")
	}
	program := func(t *testing.T, args ...string) result {
		t.Helper()
		return finish(t, exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin/slipway"), args...))
	}
	verifies := func(p process) bool { // the program of the forged bundle
		if p.args[0] != "/slipway" {
			return false
		}
		index, _ := os.ReadFile(filepath.Join(p.root, "bundle", bundle.IndexFile)) // it may have ended
		return digestOf(index) == digest
	}
	conducts := func(p process) bool { // in the container of dagger call
		return filepath.Base(p.args[0]) == "slipway" && slices.Contains(p.args, d.Name) && slices.Contains(p.args, "--bundle-id")
	}

	t.Run("slipway", func(t *testing.T) {
		ran := watch(t, verifies)
		refused(t, finish(t, d.CLI(t.Context(), "install", "--bundle", forged)), "BUN-007", is, "SLIPWAY_BUNDLE_DIGEST says "+wanted)
		refused(t, finish(t, d.CLI(t.Context(), "status", "--bundle", forged)), "BUN-007", is)
		refused(t, program(t, "bundle", "verify", forged, "--bundle-digest", wanted), "BUN-007", is, "--bundle-digest says "+wanted)
		refused(t, program(t, "lock", "verify", "--bundle", forged), "BUN-007", is)
		refused(t, program(t, "bundle", "push", forged, "127.0.0.1:1/slipway"), "BUN-007", is)
		to := t.TempDir()
		refused(t, program(t, "clients", "--out", to, "--bundle", forged), "BUN-007", is)
		require.NoFileExists(t, filepath.Join(to, "helm"))
		require.Empty(t, ran())
	})

	module := d
	module.Bundle = forged
	t.Run("dagger call", func(t *testing.T) {
		ran := watch(t, func(p process) bool { return verifies(p) || conducts(p) })
		refused(t, module.call(t, "install"), "BUN-007", is, "bundleDigest in .env, says "+wanted)
		require.Empty(t, ran())
	})

	t.Run("a toolchain that is another one", func(t *testing.T) {
		bad := module
		bad.Bundle = linked(t, d.Bundle)
		enlarge(t, filepath.Join(bad.Bundle, bundle.ToolchainArchive), 512) // of zeros, which end a tar
		ran := watch(t, conducts)
		refused(t, bad.call(t, "install"), "BUN-003", bundle.ToolchainArchive)
		require.Empty(t, ran())
	})

	t.Run("a key", long(func(t *testing.T) {
		signed := d
		signed.Bundle = linked(t, d.Bundle)
		private, public := sigstoretest.Files(t)
		_, other := sigstoretest.Files(t)
		r := program(t, "bundle", "sign", signed.Bundle, "--key", private)
		require.Zero(t, r.code, slipway.Tail(r.err))
		r = program(t, "bundle", "verify", signed.Bundle, "--bundle-key", public)
		require.Contains(t, r.out, "bundle.json is "+wanted+", signed with the key ", "what dagger call is given then")
		refused(t, finish(t, d.CLI(t.Context(), "status", "--bundle", signed.Bundle, "--bundle-key", other)), "BUN-007", "it is not signed with the key")
		r = finish(t, d.CLI(t.Context(), "status", "--bundle", signed.Bundle, "--bundle-key", public))
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "DEP-001", "it has looked")
		require.NotContains(t, r.err, "unverified")
	}))

	t.Run("an identity", long(func(t *testing.T) {
		signed, s := linked(t, d.Bundle), sigstoretest.New(t)
		require.NoError(t, os.WriteFile(filepath.Join(signed, bundle.SignatureFile), sigstoretest.Text(t, s.Attest(t, sigstoretest.Statement(wanted))), 0o644))
		by := func(subject string) []string {
			return []string{"--bundle", signed, "--certificate-identity", subject, "--certificate-oidc-issuer", sigstoretest.Issuer, "--trusted-root", s.RootFile(t)}
		}
		refused(t, finish(t, d.CLI(t.Context(), "status", by("other@example.com")...)), "BUN-007", "it is signed by "+sigstoretest.Subject)
		r := finish(t, d.CLI(t.Context(), "status", by(sigstoretest.Subject)...))
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "DEP-001", "it has looked")
		require.NotContains(t, r.err, "unverified")

		// What dagger call is given then.
		r = program(t, append([]string{"bundle", "verify", signed}, by(sigstoretest.Subject)[2:]...)...)
		require.Zero(t, r.code, slipway.Tail(r.err))
		require.Contains(t, r.out, "bundle.json is "+wanted+", signed by "+sigstoretest.Subject)
		require.NoError(t, os.Remove(filepath.Join(signed, bundle.SignatureFile)))
		refused(t, finish(t, d.CLI(t.Context(), "status", by(sigstoretest.Subject)...)), "BUN-007", "has no signature that can be read")
	}))

	t.Run("none takes any", func(t *testing.T) {
		r := finish(t, d.CLI(t.Context(), "status", "--bundle", forged, "--bundle-digest", "none"))
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "DEP-001", "it has looked")
		require.Contains(t, r.err, "warning: the bundle "+digest+" is unverified")
	})
}

// forgedBundle is a copy of a bundle with another helm, and an index that says so.
func forgedBundle(t *testing.T, from string) string {
	t.Helper()
	dir := linked(t, from)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	helm := &b.Files[slices.IndexFunc(b.Files, func(f bundle.File) bool { return f.Name == "helm" })]
	enlarge(t, b.Path(helm.Path), 1)
	helm.Size++
	helm.SHA256, err = bundle.Sum(t.Context(), b.Path(helm.Path))
	require.NoError(t, err)
	text, err := b.Marshal()
	require.NoError(t, err)
	index := filepath.Join(dir, bundle.IndexFile)
	require.NoError(t, os.Remove(index), "what it is a link to stays as it is")
	require.NoError(t, os.WriteFile(index, text, 0o644))
	return dir
}

// enlarge appends zeros to a file; what it is a link to stays as it is.
func enlarge(t *testing.T, file string, by int) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.WriteFile(file, append(text, make([]byte, by)...), 0o755))
}

// indexDigest is the digest of a bundle's index, whatever is in it.
func indexDigest(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, bundle.IndexFile))
	require.NoError(t, err)
	return digestOf(text)
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// watch looks for processes until the function that it returns is called, which gives their
// command lines.
func watch(t *testing.T, is func(process) bool) (seen func() []string) {
	t.Helper()
	stop, all := make(chan struct{}), make(chan []string, 1)
	go func() {
		var found []string
		for {
			for _, p := range processes(t) {
				if is(p) {
					found = append(found, strings.Join(p.args, " "))
				}
			}
			select {
			case <-stop:
				all <- found
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	seen = sync.OnceValue(func() []string {
		close(stop)
		return <-all
	})
	t.Cleanup(func() { seen() })
	return seen
}
