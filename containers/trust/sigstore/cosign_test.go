package sigstore

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
)

// TestCosign verifies what cosign has written, with a log of the test's, and has cosign verify
// what the other tests verify, with the same files. `make test-all` builds cosign.
func TestCosign(t *testing.T) {
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		t.Skip("there is no cosign; make test-all builds it")
	}
	dir, s := t.TempDir(), sigstoretest.New(t)
	put := func(name string, text []byte) string {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		return name
	}
	run := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), cosign, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "COSIGN_PASSWORD=")
		out, err := cmd.CombinedOutput()
		t.Logf("cosign %v\n%s", args, out)
		return err
	}
	trusted := s.Root(t, nil)
	root, index := put("trusted_root.json", trusted), put("bundle.json", file)
	verify := func(command string, more ...string) error {
		return run(append([]string{command, "--new-bundle-format", "--bundle", "bundle.sigstore.json", "--trusted-root", root, "--insecure-ignore-sct",
			"--certificate-identity", sigstoretest.Subject, "--certificate-oidc-issuer", sigstoretest.Issuer, index}, more...)...)
	}
	attestation := []string{"verify-blob-attestation", "--type", "slsaprovenance1"}

	put("bundle.sigstore.json", sigstoretest.Text(t, s.Sign(t, file)))
	require.NoError(t, verify("verify-blob"))
	put("bundle.sigstore.json", sigstoretest.Text(t, s.Attest(t, sigstoretest.Statement(digestOf(file)))))
	require.NoError(t, verify(attestation[0], attestation[1:]...))
	put("bundle.sigstore.json", sigstoretest.Text(t, s.Sign(t, []byte("another file"))))
	require.Error(t, verify("verify-blob"))

	certificate, key, err := s.Virtual.GenerateLeafCert(sigstoretest.Subject, sigstoretest.Issuer)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	put("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	put("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	put("provenance.json", []byte(`{"buildDefinition":{"buildType":"https://slipway.sh/bundle/v1","externalParameters":{}},"runDetails":{"builder":{"id":"x"}}}`))
	require.NoError(t, run("import-key-pair", "--key", "key.pem", "--output-key-prefix", "cosign"))
	require.NoError(t, run("attest-blob", "--yes", "--key", "cosign.key", "--certificate", "cert.pem", "--rekor-url", serveLog(t, s.Virtual), "--new-bundle-format",
		"--bundle", "bundle.sigstore.json", "--type", "slsaprovenance1", "--predicate", "provenance.json", index))
	text, err := os.ReadFile(filepath.Join(dir, "bundle.sigstore.json"))
	require.NoError(t, err)
	digest, by, err := verifies(t, trusted, text, own)
	require.NoError(t, err)
	require.Equal(t, digestOf(file), digest)
	require.Equal(t, "signed by builder@example.com (https://oidc.example.com)", by)
	require.NoError(t, verify(attestation[0], attestation[1:]...))
	_, _, err = verifies(t, trusted, text, Identity{Subject: "other@example.com", Issuer: sigstoretest.Issuer})
	wantUnproven(t, err, "other@example.com", "--certificate-identity")
}
