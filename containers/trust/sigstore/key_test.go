package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
	"github.com/slipway-sh/slipway/fault"
)

// keys are new keys to sign with, one of each kind, by its name: Ed25519 and ECDSA.
func keys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return map[string]crypto.Signer{"Ed25519": ed, "ECDSA": ec}
}

// write makes a bundle of these files.
func write(t *testing.T, files map[string]string) *bundle.Bundle {
	t.Helper()
	dir := t.TempDir()
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		sum, err := bundle.Sum(t.Context(), file)
		require.NoError(t, err)
		index.Files = append(index.Files, bundle.File{Path: name, Name: name, SHA256: sum, Size: int64(len(text))})
	}
	text, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	return b
}

const built = `{"buildDefinition":{"buildType":"https://slipway.sh/bundle/v1","resolvedDependencies":[{"uri":"pkg:golang/a@v1"}]},"runDetails":{"builder":{"id":"x"}}}`

func byKey(t *testing.T, key crypto.PublicKey) *Verifier {
	t.Helper()
	v, err := ByKey(key)
	require.NoError(t, err)
	return v
}

func TestAKeyVouches(t *testing.T) {
	for kind, key := range keys(t) {
		t.Run(kind, func(t *testing.T) {
			b := write(t, map[string]string{bundle.ProvenanceFile: built, "a": "b"})
			a := trust.Anchor{Signer: byKey(t, key.Public()), Digest: "sha256:" + strings.Repeat("0", 64), Additions: bundle.Additions(t.TempDir())}
			refused := func(b *bundle.Bundle, says string) {
				t.Helper()
				_, err := a.Check(t.Context(), b, nil)
				require.ErrorIs(t, err, &fault.Fault{Code: trust.CodeBundle})
				require.ErrorContains(t, err, "it is "+b.ReadDigest()+", and ")
				require.ErrorContains(t, err, says)
			}
			put := func(text []byte) {
				require.NoError(t, os.WriteFile(b.Path(bundle.SignatureFile), text, 0o644))
			}
			refused(b, "has no signature that can be read")
			text, err := trust.Sign(t.Context(), b, key)
			require.NoError(t, err)
			put(text)
			v, err := a.Check(t.Context(), b, nil)
			require.NoError(t, err)
			id, err := trust.KeyID(key.Public())
			require.NoError(t, err)
			require.Equal(t, trust.Vouched{Digest: b.ReadDigest(), By: "signed with the key " + id}, v, "whatever the digest")
			_, err = a.Check(t.Context(), b, func(file string) ([]byte, error) {
				require.Equal(t, bundle.SignatureFile, file)
				return text, nil
			})
			require.NoError(t, err)
			require.NoError(t, b.Verify(t.Context()))

			// Another bundle with this signature; then one that the user made of it.
			other := write(t, map[string]string{bundle.ProvenanceFile: built, "a": "c"})
			require.NoError(t, os.WriteFile(other.Path(bundle.SignatureFile), text, 0o644))
			refused(other, "its signature is for "+b.ReadDigest())
			require.NoError(t, a.Additions.Keep(b.ReadDigest(), other.ReadDigest()))
			v, err = a.Check(t.Context(), other, nil)
			require.NoError(t, err)
			require.Equal(t, "signed with the key "+id+", with what you have added to it", v.By)

			for _, stranger := range keys(t) {
				text, err := trust.Sign(t.Context(), b, stranger)
				require.NoError(t, err)
				put(text)
				refused(b, "it is not signed with the key "+id)
			}
			s := sigstoretest.New(t)
			put(sigstoretest.Text(t, s.Attest(t, sigstoretest.Statement(b.ReadDigest()))))
			refused(b, "it is not signed with the key "+id+": it is signed by "+sigstoretest.Subject)

			signed := openStatement[any](t, text, key.Public())
			for says, change := range map[string]func(*trust.Statement[any]){
				"":              func(s *trust.Statement[any]) { s.Type = olderStatement }, // as cosign has it
				"states ":       func(s *trust.Statement[any]) { s.PredicateType = "https://slipway.sh/run-package/v1" },
				`the kind "x"`:  func(s *trust.Statement[any]) { s.Type = "x" },
				"names no file": func(s *trust.Statement[any]) { s.Subject = nil },
				"is for sha256:1111": func(s *trust.Statement[any]) {
					s.Subject[0].Digest = map[string]string{"sha256": strings.Repeat("1", 64)}
				},
			} {
				changed := signed
				changed.Subject = append([]trust.Subject{}, signed.Subject...)
				change(&changed)
				text, err = changed.Sign(key)
				require.NoError(t, err)
				put(text)
				if says != "" {
					refused(b, says)
					continue
				}
				_, err = a.Check(t.Context(), b, nil)
				require.NoError(t, err)
			}
		})
	}
}

// What somebody made is refused, and the error is short.
func TestForgedSignatures(t *testing.T) {
	key := keys(t)["Ed25519"]
	text, err := trust.Sign(t.Context(), write(t, map[string]string{bundle.ProvenanceFile: built}), key)
	require.NoError(t, err)
	changed := func(change func(envelope map[string]any)) []byte {
		var b map[string]any
		require.NoError(t, json.Unmarshal(text, &b))
		change(b["dsseEnvelope"].(map[string]any))
		text, err := json.Marshal(b)
		require.NoError(t, err)
		return text
	}
	_, id, err := byKey(t, key.Public()).Verify(changed(func(map[string]any) {}), trust.ProvenanceType)
	require.NoError(t, err)
	require.Contains(t, id, "signed with the key ")
	for says, forged := range map[string][]byte{
		"it cannot be read": []byte("{"),
		"unexpected token":  []byte(strings.Repeat("9", 1<<20)),
		"it is not signed":  changed(func(e map[string]any) { e["signatures"] = []any{} }),
		"exactly one signature": changed(func(e map[string]any) {
			e["signatures"] = append(e["signatures"].([]any), e["signatures"].([]any)...)
		}),
		"it is not signed with the key": changed(func(e map[string]any) {
			payload, err := base64.StdEncoding.DecodeString(e["payload"].(string))
			require.NoError(t, err)
			e["payload"] = bytes.Replace(payload, []byte("golang/a@v1"), []byte("golang/a@v2"), 1)
		}),
		"unsupported media type": changed(func(e map[string]any) { e["payloadType"] = "text/plain" }),
	} {
		_, _, err := byKey(t, key.Public()).Verify(forged, trust.ProvenanceType)
		var u *trust.Unproven
		require.ErrorAs(t, err, &u, says)
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 10_000)
	}
}

func TestALockFileIsSigned(t *testing.T) {
	b := write(t, map[string]string{bundle.ProvenanceFile: built})
	key, lock := keys(t)["Ed25519"], filepath.Join(t.TempDir(), "slipway.lock.json")
	text, err := trust.SignFile(t.Context(), b, "slipway.lock.json", file, key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(lock+trust.Suffix, text, 0o600))
	by, err := trust.Anchor{Signer: byKey(t, key.Public())}.CheckFile(lock, file)
	require.NoError(t, err)
	want, err := trust.KeyID(key.Public())
	require.NoError(t, err)
	require.Equal(t, "signed with the key "+want, by)
	for says, check := range map[string]func() (string, error){
		"the signature is for sha256:44136f": func() (string, error) {
			return trust.Anchor{Signer: byKey(t, key.Public())}.CheckFile(lock, []byte("{ }"))
		},
		"it is not signed with the key": func() (string, error) {
			return trust.Anchor{Signer: byKey(t, keys(t)["ECDSA"].Public())}.CheckFile(lock, file)
		},
		"no such file": func() (string, error) {
			return trust.Anchor{Signer: byKey(t, key.Public())}.CheckFile(lock+".none", file)
		},
	} {
		_, err := check()
		require.ErrorIs(t, err, &fault.Fault{Code: trust.CodeFile})
		require.ErrorContains(t, err, says)
	}
}

func TestWhatIsSigned(t *testing.T) {
	key := keys(t)["ECDSA"]
	b := write(t, map[string]string{bundle.ProvenanceFile: built})
	text, err := trust.Sign(t.Context(), b, key)
	require.NoError(t, err)
	s := openStatement[trust.Provenance](t, text, key.Public())
	require.Equal(t, "https://slsa.dev/provenance/v1", s.PredicateType)
	require.Equal(t, []trust.Subject{{Name: "bundle.json", Digest: map[string]string{"sha256": b.ReadDigest()[len("sha256:"):]}}}, s.Subject)
	require.Equal(t, "pkg:golang/a@v1", s.Predicate.BuildDefinition.ResolvedDependencies[0].URI)
	ed := keys(t)["Ed25519"]
	first, err := trust.Sign(t.Context(), b, ed)
	require.NoError(t, err)
	second, err := trust.Sign(t.Context(), b, ed)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second), "the same bytes")

	b.Index.Images = append(b.Index.Images, bundle.Image{Name: "quay.io/web:1", Archive: "images/added/a.tar", Digest: "sha256:" + strings.Repeat("a", 64)})
	text, err = trust.Sign(t.Context(), b, key)
	require.NoError(t, err)
	s = openStatement[trust.Provenance](t, text, key.Public())
	require.Equal(t, trust.Dependency{Name: "quay.io/web:1", Digest: map[string]string{"sha256": strings.Repeat("a", 64)}}, s.Predicate.BuildDefinition.ResolvedDependencies[1])

	_, err = trust.Sign(t.Context(), write(t, map[string]string{"a": "b"}), key)
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent})
	_, err = trust.Sign(t.Context(), write(t, map[string]string{bundle.ProvenanceFile: "{"}), key)
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent})
	require.NoError(t, os.WriteFile(b.Path(bundle.ProvenanceFile), []byte("{}"), 0o644))
	_, err = trust.Sign(t.Context(), b, key)
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent}, "nobody signs what is damaged")
}

// pemFile is the PEM file of a public key.
func pemFile(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.pub.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	return file
}

// TestOpenSSLVerifies: the signature is what DSSE says, to a program that shares no code with
// this one.
func TestOpenSSLVerifies(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl")
	}
	for kind, key := range keys(t) {
		t.Run(kind, func(t *testing.T) {
			text, err := sigstoretest.Statement(digestOf(file)).Sign(key)
			require.NoError(t, err)
			var b struct {
				DSSEEnvelope struct {
					PayloadType string
					Payload     []byte
					Signatures  []struct{ Sig []byte }
				}
			}
			require.NoError(t, json.Unmarshal(text, &b))
			e, public, dir := b.DSSEEnvelope, pemFile(t, key.Public()), t.TempDir()
			put := func(name string, data []byte) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
			}
			put("sig", e.Signatures[0].Sig)
			args := map[string][]string{
				"ECDSA":   {"dgst", "-sha256", "-verify", public, "-signature", "sig", "signed"},
				"Ed25519": {"pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-sigfile", "sig", "-in", "signed"},
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

// TestCosignWithAKey verifies a signature with the command in docs/lock.md, and this package
// one that cosign made. `make test-all` builds cosign.
func TestCosignWithAKey(t *testing.T) {
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		t.Skip("there is no cosign; make test-all builds it")
	}
	b := write(t, map[string]string{bundle.ProvenanceFile: built})
	key := keys(t)["ECDSA"]
	text, err := trust.Sign(t.Context(), b, key)
	require.NoError(t, err)
	put := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(b.Path(name), text, 0o644))
	}
	put(bundle.SignatureFile, text)
	home := t.TempDir()
	// Version 2 of cosign wants a trusted root, of which it uses nothing here.
	root := filepath.Join(home, "trusted_root.json")
	require.NoError(t, os.WriteFile(root, []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), 0o600))
	run := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), cosign, args...)
		cmd.Dir, cmd.Env = b.Dir(), append(os.Environ(), "HOME="+home, "COSIGN_PASSWORD=")
		out, err := cmd.CombinedOutput()
		t.Logf("cosign %v\n%s", args, out)
		return err
	}
	verify := func(key, kind string) error {
		return run("verify-blob-attestation", "--key", key, "--insecure-ignore-tlog", "--trusted-root", root,
			"--bundle", bundle.SignatureFile, "--type", kind, bundle.IndexFile)
	}
	public := pemFile(t, key.Public())
	require.NoError(t, verify(public, "slsaprovenance1"))
	require.Error(t, verify(pemFile(t, keys(t)["ECDSA"].Public()), "slsaprovenance1"))

	require.NoError(t, run("generate-key-pair", "--output-key-prefix", filepath.Join(home, "cosign")))
	its, err := os.ReadFile(filepath.Join(home, "cosign.pub"))
	require.NoError(t, err)
	read, err := trust.PublicKey(its)
	require.NoError(t, err)
	for what, args := range map[string][]string{
		"attest-blob": {"--type", "slsaprovenance1", "--predicate", bundle.ProvenanceFile},
		"sign-blob":   nil,
	} {
		require.NoError(t, run(append([]string{what, "--yes", "--key", filepath.Join(home, "cosign.key"), "--tlog-upload=false",
			"--new-bundle-format", "--bundle", bundle.SignatureFile, bundle.IndexFile}, args...)...))
		_, err = trust.Anchor{Signer: byKey(t, read)}.Check(t.Context(), b, nil)
		require.NoError(t, err, what)
	}
	index, err := os.ReadFile(b.Path(bundle.IndexFile))
	require.NoError(t, err)
	put(bundle.SignatureFile, text)
	put(bundle.IndexFile, append(index, '\n'))
	require.Error(t, verify(public, "slsaprovenance1"), "it is another index")
}

// openStatement returns the statement in a sigstore bundle, and fails unless that is signed with the pair
// of key. It shares no code with what signs and verifies.
func openStatement[P any](t *testing.T, text []byte, key crypto.PublicKey) trust.Statement[P] {
	t.Helper()
	var b struct {
		Envelope struct {
			Payload     []byte
			PayloadType string
			Signatures  []struct{ Sig []byte }
		} `json:"dsseEnvelope"`
	}
	require.NoError(t, json.Unmarshal(text, &b))
	e := b.Envelope
	require.Len(t, e.Signatures, 1)
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	switch key := key.(type) {
	case ed25519.PublicKey:
		require.True(t, ed25519.Verify(key, signed, e.Signatures[0].Sig))
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(signed)
		require.True(t, ecdsa.VerifyASN1(key, sum[:], e.Signatures[0].Sig))
	default:
		t.Fatalf("a key of the kind %T", key)
	}
	var s trust.Statement[P]
	require.NoError(t, json.Unmarshal(e.Payload, &s))
	return s
}
