package sigstore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/data"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
	"github.com/slipway-sh/slipway/fault"
)

var (
	file = []byte("{}")
	own  = Identity{Subject: sigstoretest.Subject, Issuer: sigstoretest.Issuer}
)

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// verifies makes a verifier below the root and lets it verify.
func verifies(t *testing.T, trusted, text []byte, of Identity) (digest, by string, err error) {
	t.Helper()
	v, err := ByIdentity(trusted, of)
	require.NoError(t, err)
	return v.Verify(text, trust.ProvenanceType)
}

// wantUnproven fails unless err is a refusal that says so, with a remedy that has fix in it.
func wantUnproven(t *testing.T, err error, says, fix string) {
	t.Helper()
	var u *trust.Unproven
	require.ErrorAs(t, err, &u)
	require.ErrorContains(t, err, says)
	require.Contains(t, u.Fix, fix)
}

// attestTiles signs a statement with a log like Rekor's second version, which has no time of its own.
func attestTiles(t *testing.T, s *sigstoretest.Sigstore, statement any) *protobundle.Bundle {
	t.Helper()
	payload, err := json.Marshal(statement)
	require.NoError(t, err)
	entity, err := s.Virtual.AttestHashedRekordV2(sigstoretest.Subject, sigstoretest.Issuer, payload)
	require.NoError(t, err)
	return s.Bundle(t, entity)
}

func TestAnIdentityVouches(t *testing.T) {
	s := sigstoretest.New(t)
	trusted, statement := s.Root(t, nil), sigstoretest.Statement(digestOf(file))
	for what, b := range map[string]*protobundle.Bundle{
		"attest-blob": s.Attest(t, statement), "a log of tiles": attestTiles(t, s, statement), "sign-blob": s.Sign(t, file),
	} {
		for of, identity := range map[string]Identity{
			"exact":  own,
			"regexp": {Subject: `^builder@`, Issuer: sigstoretest.Issuer},
		} {
			t.Run(what+", "+of, func(t *testing.T) {
				digest, by, err := verifies(t, trusted, sigstoretest.Text(t, b), identity)
				require.NoError(t, err)
				require.Equal(t, digestOf(file), digest)
				require.Equal(t, "signed by builder@example.com (https://oidc.example.com)", by)
			})
		}
	}
}

func TestAnotherIdentity(t *testing.T) {
	s := sigstoretest.New(t)
	trusted, text := s.Root(t, nil), sigstoretest.Text(t, s.Sign(t, file))
	for says, identity := range map[string]Identity{
		`expected SAN value "other@example.com"`:      {Subject: "other@example.com", Issuer: sigstoretest.Issuer},
		`expected SAN value to match regex "^other"`:  {Subject: "^other", Issuer: sigstoretest.Issuer},
		`expected issuer value "https://example.com"`: {Subject: sigstoretest.Subject, Issuer: "https://example.com"},
		`expected SAN value "builder"`:                {Subject: "builder", Issuer: sigstoretest.Issuer},
	} {
		_, _, err := verifies(t, trusted, text, identity)
		wantUnproven(t, err, says, "--certificate-identity NAME --certificate-oidc-issuer URL")
		require.ErrorContains(t, err, "it is signed by builder@example.com (https://oidc.example.com)")
	}
	for _, nobody := range []Identity{{}, {Subject: "x"}, {Issuer: "x"}, {Subject: "^(", Issuer: "x"}} {
		_, err := ByIdentity(trusted, nobody)
		require.Error(t, err, "%+v", nobody)
	}
}

func TestWhatProvesNothing(t *testing.T) {
	s := sigstoretest.New(t)
	trusted, statement := s.Root(t, nil), sigstoretest.Statement(digestOf(file))
	run := statement
	run.PredicateType = "https://slipway.sh/run-package/v1"
	nameless := statement
	nameless.Subject = nil
	typed := statement
	typed.Type = "x"
	long := sigstoretest.Statement(digestOf(file) + "00")
	for what, c := range map[string]struct {
		change    func(*protobundle.Bundle)
		of        any // nil: the file itself
		says, fix string
	}{
		"no entry in a log":   {func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }, statement, "does not prove that builder@example.com", "--trusted-root"},
		"of another file":     {func(b *protobundle.Bundle) { b.GetMessageSignature().MessageDigest.Digest[0] ^= 1 }, nil, "does not prove that builder@example.com", "--trusted-root"},
		"another statement":   {func(b *protobundle.Bundle) { b.GetDsseEnvelope().Payload = append(b.GetDsseEnvelope().Payload, ' ') }, statement, "does not prove that builder@example.com", "--trusted-root"},
		"another signature":   {func(b *protobundle.Bundle) { b.GetMessageSignature().Signature[9] ^= 1 }, nil, "does not prove that builder@example.com", "--trusted-root"},
		"a later entry":       {func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].IntegratedTime++ }, nil, "does not prove that builder@example.com", "--trusted-root"},
		"another predicate":   {nil, run, `it states "https://slipway.sh/run-package/v1"`, "slsaprovenance1"},
		"no file":             {nil, nameless, "it names no file", "slsaprovenance1"},
		"no sha256":           {nil, long, "it names no sha256", "slsaprovenance1"},
		"an entry of others":  {func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].LogId.KeyId[0] ^= 1 }, nil, "does not prove that builder@example.com", "--trusted-root"},
		"another statement's": {nil, typed, `it is a statement of the kind "x"`, "slsaprovenance1"},
		"of a later form":     {func(b *protobundle.Bundle) { b.MediaType = "application/vnd.dev.sigstore.bundle.v0.9+json" }, nil, "cannot be read", "--new-bundle-format"},
	} {
		t.Run(what, func(t *testing.T) {
			b := s.Sign(t, file)
			if c.of != nil {
				b = s.Attest(t, c.of)
			}
			if c.change != nil {
				c.change(b)
			}
			_, _, err := verifies(t, trusted, sigstoretest.Text(t, b), own)
			wantUnproven(t, err, c.says, c.fix)
		})
	}
	for _, text := range []string{"", "{}", `{"payloadType":"application/vnd.in-toto+json"}`} {
		_, _, err := verifies(t, trusted, []byte(text), own)
		wantUnproven(t, err, "it cannot be read", "cosign attest-blob --new-bundle-format")
	}
	text, err := data.Bundle(t, "public-key-validity.sigstore.json").MarshalJSON()
	require.NoError(t, err)
	_, _, err = verifies(t, trusted, text, own)
	wantUnproven(t, err, "it is signed with a key", "--bundle-key FILE")
}

func TestTrustedRoots(t *testing.T) {
	s, stranger := sigstoretest.New(t), sigstoretest.New(t)
	text, timeless := sigstoretest.Text(t, s.Sign(t, file)), sigstoretest.Text(t, attestTiles(t, s, sigstoretest.Statement(digestOf(file))))
	ended := func(p *sigstoretest.Parts) { p.Authority.ValidityPeriodEnd = time.Now().Add(-time.Hour) }
	for what, c := range map[string]struct {
		trusted, text []byte
		says          string
	}{
		"of another instance": {stranger.Root(t, nil), text, "does not prove that builder@example.com"},
		"another authority": {stranger.Root(t, func(p *sigstoretest.Parts) {
			s.Root(t, func(own *sigstoretest.Parts) { p.Logs, p.Time = own.Logs, own.Time })
		}), text, "does not prove that builder@example.com"},
		"an authority that ended": {s.Root(t, ended), text, "does not prove that builder@example.com"},
		"no such time":            {s.Root(t, func(p *sigstoretest.Parts) { p.Time = stranger.Virtual.TimestampingAuthorities() }), timeless, "does not prove that builder@example.com"},
		"certificates in a log":   {s.Root(t, func(p *sigstoretest.Parts) { p.WithCertificates = true }), text, "SCT"},
	} {
		t.Run(what, func(t *testing.T) {
			_, _, err := verifies(t, c.trusted, c.text, own)
			wantUnproven(t, err, c.says, "--trusted-root FILE")
		})
	}
	for what, trusted := range map[string][]byte{
		"no JSON": []byte("{"), "no root": []byte("{}"), "no authority": []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`),
		"no log": s.Root(t, func(p *sigstoretest.Parts) { p.Logs = nil }),
	} {
		_, err := ByIdentity(trusted, own)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeRoot}, what)
		var f *fault.Fault
		require.True(t, errors.As(err, &f))
		require.Equal(t, fault.Usage, f.Class)
	}
}

// TestARealCertificate: of an instance that was none of a test, with a log of certificates.
func TestARealCertificate(t *testing.T) {
	trusted, err := data.TrustedRoot(t, "scaffolding.json").MarshalJSON()
	require.NoError(t, err)
	text, err := data.Bundle(t, "othername.sigstore.json").MarshalJSON()
	require.NoError(t, err)
	digest, by, err := verifies(t, trusted, text, Identity{Subject: "foo!oidc.local", Issuer: "http://oidc.local:8080"})
	require.NoError(t, err)
	require.Equal(t, "sha256:bc103b4a84971ef6459b294a2b98568a2bfb72cded09d4acd1e16366a401f95b", digest)
	require.Equal(t, "signed by foo!oidc.local (http://oidc.local:8080)", by)
}
