package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
)

// A bundle that somebody signed without a key is the one that is wanted of them, and no other.
func TestABundleThatIsSignedWithoutAKey(t *testing.T) {
	withoutImages(t)
	s, dir := sigstoretest.New(t), smallBundle(t)
	trusted := s.RootFile(t)
	by := func(subject, issuer, root string) []string {
		return []string{"--certificate-identity", subject, "--certificate-oidc-issuer", issuer, "--trusted-root", root}
	}
	signer := by(sigstoretest.Subject, sigstoretest.Issuer, trusted)
	verify := func(flags ...string) (int, string, string) {
		return slipway(append([]string{"bundle", "verify", dir}, flags...)...)
	}
	refused := func(code int, flags []string, says ...string) {
		t.Helper()
		exit, _, errs := verify(flags...)
		require.Equal(t, code, exit, errs)
		for _, text := range says {
			require.Contains(t, errs, text)
		}
	}
	refused(3, signer, "BUN-007", "has no signature that can be read", "as bundle.sigstore.json")

	b, err := bundle.Read(dir)
	require.NoError(t, err)
	index, err := os.ReadFile(b.Path(bundle.IndexFile))
	require.NoError(t, err)
	put := func(text []byte) {
		t.Helper()
		require.NoError(t, os.WriteFile(b.Path(bundle.SignatureFile), text, 0o600))
	}
	attested := sigstoretest.Text(t, s.Attest(t, sigstoretest.Statement(b.ReadDigest())))
	for _, signature := range [][]byte{attested, sigstoretest.Text(t, s.Sign(t, index))} {
		put(signature)
		exit, out, errs := verify(signer...)
		require.Zero(t, exit, errs)
		require.Contains(t, out, "bundle.json is "+b.ReadDigest()+", signed by "+sigstoretest.Subject+" ("+sigstoretest.Issuer+")")
		exit, _, errs = verify("--certificate-identity", "^.*@example.com$", "--certificate-oidc-issuer", sigstoretest.Issuer, "--trusted-root", trusted)
		require.Zero(t, exit, errs)
	}
	other := filepath.Join(t.TempDir(), "trusted_root.json")
	require.NoError(t, os.WriteFile(other, sigstoretest.New(t).Root(t, nil), 0o600))
	empty := filepath.Join(t.TempDir(), "trusted_root.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o600))
	refused(3, by("other@example.com", sigstoretest.Issuer, trusted), "BUN-007", `expected SAN value "other@example.com"`, "ask who publishes it")
	refused(3, by(sigstoretest.Subject, "https://example.com", trusted), "BUN-007", `expected issuer value "https://example.com"`)
	refused(3, by(sigstoretest.Subject, sigstoretest.Issuer, other), "BUN-007", "the trusted root does not prove that "+sigstoretest.Subject, "--trusted-root FILE")
	refused(2, by(sigstoretest.Subject, sigstoretest.Issuer, empty), "BUN-016", "cosign trusted-root create")
	refused(2, by(sigstoretest.Subject, sigstoretest.Issuer, empty+".none"), "BUN-016")
	refused(2, signer[:4], "--trusted-root FILE")
	refused(2, signer[2:], "--certificate-identity NAME")
	refused(2, append(signer[:2:2], signer[4:]...), "--certificate-oidc-issuer URL")
	refused(2, append(signer[2:], "--certificate-identity", "^("), "missing closing )")
	refused(2, append(signer, "--bundle-digest", "none"), "give either --bundle-digest, --bundle-key or --certificate-identity")

	// In the environment it wins over a digest, and a flag wins over it.
	t.Setenv("SLIPWAY_CERTIFICATE_IDENTITY", sigstoretest.Subject)
	t.Setenv("SLIPWAY_CERTIFICATE_OIDC_ISSUER", sigstoretest.Issuer)
	t.Setenv("SLIPWAY_TRUSTED_ROOT", trusted)
	t.Setenv("SLIPWAY_BUNDLE_DIGEST", "none")
	exit, out, errs := verify()
	require.Zero(t, exit, errs)
	require.Contains(t, out, ", signed by "+sigstoretest.Subject)
	exit, out, errs = verify("--bundle-digest", b.ReadDigest())
	require.Zero(t, exit, errs)
	require.Contains(t, out, ", as --bundle-digest says")

	// Of another bundle; then of one that this user has made of the signed one.
	put(sigstoretest.Text(t, s.Sign(t, append(index, '\n'))))
	refused(3, nil, "BUN-007", "its signature is for sha256:", "whoever changes the bundle signs it again")
	refused(3, []string{"--bundle-digest", ""}, "BUN-007") // whoever says nothing gets nothing
	put(attested)
	exit, _, errs = slipway("bundle", "add", dir, "web="+webLayout(t))
	require.Zero(t, exit, errs)
	exit, out, errs = verify()
	require.Zero(t, exit, errs)
	require.Contains(t, out, ", with what you have added to it")
	for _, command := range [][]string{{"status", "--bundle", dir}, {"bundle", "push", dir, "127.0.0.1:1/x"}, {"lock", "verify", "--bundle", dir}} {
		put(sigstoretest.Text(t, s.Sign(t, index[1:])))
		exit, _, errs = slipway(command...)
		require.Equal(t, 3, exit, errs)
		require.Contains(t, errs, "BUN-007", command)
		require.Contains(t, errs, "its signature is for sha256:", command)
	}
}

func TestALockThatIsSignedWithoutAKey(t *testing.T) {
	withoutImages(t)
	s := sigstoretest.New(t)
	file := lockFile(t, "localhost:1/slipway")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	validate := func(more ...string) (int, string) {
		exit, _, errs := slipway(append([]string{"validate", "--lock", file, "--certificate-identity", sigstoretest.Subject, "--certificate-oidc-issuer", sigstoretest.Issuer, "--trusted-root", s.RootFile(t)}, more...)...)
		return exit, errs
	}
	exit, errs := validate()
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "LCK-007")
	require.Contains(t, errs, "slipway.lock.json.sigstore.json")
	signature := sigstoretest.Text(t, s.Sign(t, text))
	require.NoError(t, os.WriteFile(file+trust.Suffix, signature, 0o600))
	exit, errs = validate()
	require.Equal(t, 2, exit, errs)
	require.Contains(t, errs, "REG-010", "what comes next")
	exit, errs = validate("--certificate-identity", "other@example.com")
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "LCK-007")
	require.Contains(t, errs, "it is signed by "+sigstoretest.Subject)
	require.NoError(t, os.WriteFile(file+trust.Suffix, sigstoretest.Text(t, s.Sign(t, text[1:])), 0o600))
	exit, errs = validate()
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "the file is sha256:")
}
