package trust

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/provenance"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/dsse"
	"github.com/slipway-sh/slipway/pipeline/dsse/dssetest"
)

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

func TestAKeyVouches(t *testing.T) {
	for kind, key := range dssetest.Keys(t) {
		t.Run(kind, func(t *testing.T) {
			b := write(t, map[string]string{bundle.ProvenanceFile: built, "a": "b"})
			a := Anchor{Key: key.Public(), Digest: "sha256:" + strings.Repeat("0", 64), Additions: bundle.Additions(t.TempDir())}
			refused := func(b *bundle.Bundle, says string) {
				t.Helper()
				_, err := a.Check(t.Context(), b, nil)
				require.ErrorIs(t, err, &fault.Fault{Code: CodeBundle})
				require.ErrorContains(t, err, "it is "+b.ReadDigest()+", and ")
				require.ErrorContains(t, err, says)
			}
			put := func(text []byte) {
				require.NoError(t, os.WriteFile(b.Path(bundle.SignatureFile), text, 0o644))
			}
			refused(b, "has no signature that can be read")
			text, err := Sign(t.Context(), b, key)
			require.NoError(t, err)
			put(text)
			v, err := a.Check(t.Context(), b, nil)
			require.NoError(t, err)
			id, err := dsse.KeyID(key.Public())
			require.NoError(t, err)
			require.Equal(t, Vouched{Digest: b.ReadDigest(), By: "signed with the key " + id}, v, "whatever the digest")
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

			for _, stranger := range dssetest.Keys(t) {
				text, err := Sign(t.Context(), b, stranger)
				require.NoError(t, err)
				put(text)
				refused(b, "it is not signed with the key "+id)
			}
			_, s, err := dsse.Open[any](text)
			require.NoError(t, err)
			for says, change := range map[string]func(*dsse.Statement[any]){
				"":                             func(s *dsse.Statement[any]) { s.Type = olderStatement }, // as cosign has it
				"states ":                      func(s *dsse.Statement[any]) { s.PredicateType = "https://slipway.sh/run-package/v1" },
				`states "x"`:                   func(s *dsse.Statement[any]) { s.Type = "x" },
				"names no digest":              func(s *dsse.Statement[any]) { s.Subject = nil },
				"its signature cannot be read": nil,
				"it is not signed":             func(*dsse.Statement[any]) {},
				"is for sha256:1111": func(s *dsse.Statement[any]) {
					s.Subject[0].Digest = map[string]string{"sha256": strings.Repeat("1", 64)}
				},
			} {
				text, changed := []byte("{"), s
				changed.Subject = append([]dsse.Subject{}, s.Subject...)
				if change != nil {
					change(&changed)
					by := key
					if says == "it is not signed" {
						by = nil
					}
					text, err = dsse.Sign(t.Context(), changed, by)
					require.NoError(t, err)
				}
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

func TestALockFileIsSigned(t *testing.T) {
	b := write(t, map[string]string{bundle.ProvenanceFile: built})
	key, file := dssetest.Keys(t)["Ed25519"], []byte("{}")
	text, err := SignFile(t.Context(), b, "slipway.lock.json", file, key)
	require.NoError(t, err)
	read := func(suffix string) ([]byte, error) {
		require.Equal(t, FileSuffix, suffix)
		return text, nil
	}
	by, err := Anchor{Key: key.Public()}.CheckFile(t.Context(), file, read)
	require.NoError(t, err)
	want, err := dsse.KeyID(key.Public())
	require.NoError(t, err)
	require.Equal(t, "signed with the key "+want, by)
	for says, check := range map[string]func() (string, error){
		"the signature is for sha256:44136f": func() (string, error) { return Anchor{Key: key.Public()}.CheckFile(t.Context(), []byte("{ }"), read) },
		"it is not signed with the key": func() (string, error) {
			return Anchor{Key: dssetest.Keys(t)["ECDSA"].Public()}.CheckFile(t.Context(), file, read)
		},
		"no such file": func() (string, error) {
			return Anchor{Key: key.Public()}.CheckFile(t.Context(), file, func(string) ([]byte, error) { return os.ReadFile("none") })
		},
	} {
		_, err := check()
		require.ErrorIs(t, err, &fault.Fault{Code: CodeFile})
		require.ErrorContains(t, err, says)
	}
}

func TestWhatIsSigned(t *testing.T) {
	key := dssetest.Keys(t)["ECDSA"]
	b := write(t, map[string]string{bundle.ProvenanceFile: built})
	text, err := Sign(t.Context(), b, key)
	require.NoError(t, err)
	_, s, err := dsse.Open[provenance.Provenance](text)
	require.NoError(t, err)
	require.Equal(t, "https://slsa.dev/provenance/v1", s.PredicateType)
	require.Equal(t, []dsse.Subject{{Name: "bundle.json", Digest: map[string]string{"sha256": b.ReadDigest()[len("sha256:"):]}}}, s.Subject)
	require.Equal(t, "pkg:golang/a@v1", s.Predicate.BuildDefinition.ResolvedDependencies[0].URI)

	b.Index.Images = append(b.Index.Images, bundle.Image{Name: "quay.io/web:1", Archive: "images/added/a.tar", Digest: "sha256:" + strings.Repeat("a", 64)})
	text, err = Sign(t.Context(), b, key)
	require.NoError(t, err)
	_, s, err = dsse.Open[provenance.Provenance](text)
	require.NoError(t, err)
	require.Equal(t, provenance.Dependency{Name: "quay.io/web:1", Digest: map[string]string{"sha256": strings.Repeat("a", 64)}}, s.Predicate.BuildDefinition.ResolvedDependencies[1])

	_, err = Sign(t.Context(), write(t, map[string]string{"a": "b"}), key)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSign})
	_, err = Sign(t.Context(), write(t, map[string]string{bundle.ProvenanceFile: "{"}), key)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSign})
	require.NoError(t, os.WriteFile(b.Path(bundle.ProvenanceFile), []byte("{}"), 0o644))
	_, err = Sign(t.Context(), b, key)
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent}, "nobody signs what is damaged")
}

// TestTheModuleReadsTheSame: the Dagger module, which shares no code with this package, verifies
// these files in its own test.
func TestTheModuleReadsTheSame(t *testing.T) {
	dir := "../../ci/origin/testdata"
	text, err := os.ReadFile(filepath.Join(dir, "key.pub.pem"))
	require.NoError(t, err)
	key, err := dsse.PublicKey(text)
	require.NoError(t, err)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	_, err = Anchor{Key: key}.Check(t.Context(), b, nil)
	require.NoError(t, err)
}

// TestCosign verifies a bundle's signature with the command in docs/lock.md, and this package
// one that cosign made. `make test-all` builds cosign.
func TestCosign(t *testing.T) {
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		t.Skip("there is no cosign; make test-all builds it")
	}
	b := write(t, map[string]string{bundle.ProvenanceFile: built})
	key := dssetest.Keys(t)["ECDSA"]
	text, err := Sign(t.Context(), b, key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.Path(bundle.SignatureFile), text, 0o644))
	home := t.TempDir()
	run := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), cosign, args...)
		cmd.Dir, cmd.Env = b.Dir(), append(os.Environ(), "HOME="+home, "COSIGN_PASSWORD=")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	public := func(name string, key crypto.PublicKey) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		require.NoError(t, err)
		file := filepath.Join(home, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
		return file
	}
	verify := func(key string) error {
		return run("verify-blob-attestation", "--key", key, "--insecure-ignore-tlog", "--signature", bundle.SignatureFile, "--type", "slsaprovenance1", bundle.IndexFile)
	}
	require.NoError(t, verify(public("key.pub.pem", key.Public())))
	require.Error(t, verify(public("other.pub.pem", dssetest.Keys(t)["ECDSA"].Public())))

	require.NoError(t, run("generate-key-pair", "--output-key-prefix", filepath.Join(home, "cosign")))
	require.NoError(t, run("attest-blob", "--yes", "--key", filepath.Join(home, "cosign.key"), "--tlog-upload=false", "--type", "slsaprovenance1",
		"--predicate", bundle.ProvenanceFile, "--output-signature", bundle.SignatureFile, bundle.IndexFile))
	its, err := os.ReadFile(filepath.Join(home, "cosign.pub"))
	require.NoError(t, err)
	read, err := dsse.PublicKey(its)
	require.NoError(t, err)
	_, err = Anchor{Key: read}.Check(t.Context(), b, nil)
	require.NoError(t, err)
	index, err := os.ReadFile(b.Path(bundle.IndexFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.Path(bundle.SignatureFile), text, 0o644))
	require.NoError(t, os.WriteFile(b.Path(bundle.IndexFile), append(index, '\n'), 0o644))
	require.Error(t, verify(filepath.Join(home, "key.pub.pem")), "it is another index")
}
