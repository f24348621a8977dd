package runpackage

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/dsse"
	"github.com/slipway-sh/slipway/pipeline/dsse/dssetest"
)

// TestCosignVerifies a file of a package against its index, with the command in
// docs/package.md. `make test-all` builds cosign.
func TestCosignVerifies(t *testing.T) {
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		t.Skip("there is no cosign; make test-all builds it")
	}
	info, files := sample()
	key, other := dssetest.Keys(t)["ECDSA"], dssetest.Keys(t)["ECDSA"]
	index, err := dsse.Sign(t.Context(), state(info, files), key)
	require.NoError(t, err)
	dir := t.TempDir()
	put := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	put(IndexFile, index)
	put(ConfigFile, files[ConfigFile].Data)
	for name, k := range map[string]any{"key.pub.pem": key.Public(), "other.pub.pem": other.Public()} {
		der, err := x509.MarshalPKIXPublicKey(k)
		require.NoError(t, err)
		put(name, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	verify := func(key string) error {
		cmd := exec.CommandContext(t.Context(), cosign, "verify-blob-attestation", "--key", key, "--insecure-ignore-tlog",
			"--signature", IndexFile, "--type", PredicateType, ConfigFile)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	require.NoError(t, verify("key.pub.pem"))
	require.Error(t, verify("other.pub.pem"))
	put(ConfigFile, append(files[ConfigFile].Data, '#'))
	require.Error(t, verify("key.pub.pem"), "it is another file")
}
