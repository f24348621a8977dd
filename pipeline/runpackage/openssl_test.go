package runpackage

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/dsse"
	"github.com/slipway-sh/slipway/pipeline/dsse/dssetest"
)

// TestOpenSSLVerifies: the signature is what DSSE says, to a program that shares no code with
// this one. docs/package.md has the same commands.
func TestOpenSSLVerifies(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl")
	}
	info, files := sample()
	for kind, key := range dssetest.Keys(t) {
		t.Run(kind, func(t *testing.T) {
			index, err := dsse.Sign(t.Context(), state(info, files), key)
			require.NoError(t, err)
			var e struct {
				PayloadType string
				Payload     []byte
				Signatures  []struct{ Sig string }
			}
			require.NoError(t, json.Unmarshal(index, &e))
			sig, err := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
			require.NoError(t, err)
			der, err := x509.MarshalPKIXPublicKey(key.Public())
			require.NoError(t, err)
			dir := t.TempDir()
			put := func(name string, data []byte) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
			}
			put("key.pub.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
			put("sig", sig)
			args := map[string][]string{
				"ECDSA":   {"dgst", "-sha256", "-verify", "key.pub.pem", "-signature", "sig", "signed"},
				"Ed25519": {"pkeyutl", "-verify", "-pubin", "-inkey", "key.pub.pem", "-rawin", "-sigfile", "sig", "-in", "signed"},
			}[kind]
			verify := func(payload []byte) error {
				put("signed", fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(payload), payload))
				cmd := exec.CommandContext(t.Context(), openssl, args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				t.Logf("%s", out)
				return err
			}
			require.NoError(t, verify(e.Payload))
			e.Payload[len(e.Payload)/2] ^= 1
			require.Error(t, verify(e.Payload))
		})
	}
}
