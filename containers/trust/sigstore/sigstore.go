// Package sigstore verifies signatures that are sigstore bundles: by a key, or by an identity
// (Fulcio's certificate of who signed, and the entry in a transparency log) against a trusted
// root. It asks nobody: what it needs is in the two files.
package sigstore

import (
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
)

// CodeRoot: the trusted root cannot be used.
const CodeRoot fault.Code = "BUN-016"

// Identity says who may have signed.
type Identity struct {
	Subject string // the certificate's subject alternative name: an address, a workflow; or an expression
	Issuer  string // URL of the OpenID Connect issuer that vouched for the subject
}

// IsRegexp reports whether Subject is a regular expression, which begins with ^.
func (i Identity) IsRegexp() bool { return strings.HasPrefix(i.Subject, "^") }

// Verifier verifies signatures by a key or by an identity. It is a trust.Verifier.
type Verifier struct {
	root   root.TrustedMaterial
	policy verify.PolicyOption
	verify *verify.Verifier
	key    string // its id; empty: an identity signs
}

var _ trust.Verifier = (*Verifier)(nil)

// ByKey is a verifier of signatures by the pair of a public key, ECDSA P-256 or Ed25519. They need
// no entry in a transparency log, and no time.
func ByKey(key crypto.PublicKey) (*Verifier, error) {
	v := &Verifier{policy: verify.WithKey()}
	own, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("use the key to verify with: %w", err)
	}
	if v.key, err = trust.KeyID(key); err != nil {
		return nil, err
	}
	v.root = root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(own, time.Time{}, time.Time{}), nil
	})
	v.verify, err = verify.NewVerifier(v.root, verify.WithNoObserverTimestamps())
	return v, err
}

// ByIdentity is a verifier of signatures by this identity, below the trusted root with this text, as
// sigstore's trusted_root.json. A signature needs an entry in one of the root's transparency
// logs and a time, by that log or by one of the root's time stamping authorities; and the
// certificate an entry in a certificate transparency log, if the root has any. It fails with
// CodeRoot, and for an identity that matches anybody or nobody.
func ByIdentity(trusted []byte, of Identity) (*Verifier, error) {
	subject, expression := of.Subject, ""
	if of.IsRegexp() {
		subject, expression = "", of.Subject
	}
	identity, err := verify.NewShortCertificateIdentity(of.Issuer, "", subject, expression)
	if err != nil {
		return nil, fmt.Errorf("say who may have signed: %w", err)
	}
	text, err := root.NewTrustedRootFromJSON(trusted)
	if err != nil {
		return nil, Unusable(err)
	}
	v := &Verifier{root: text, policy: verify.WithCertificateIdentity(identity)}
	switch {
	case len(v.root.FulcioCertificateAuthorities()) == 0:
		return nil, Unusable(errors.New("it has no certificate authority"))
	case len(v.root.RekorLogs()) == 0:
		return nil, Unusable(errors.New("it has no transparency log"))
	}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	if len(v.root.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	v.verify, err = verify.NewVerifier(v.root, options...)
	return v, err
}

// Unusable is the fault of a trusted root that cannot be used, for err.
func Unusable(err error) error {
	return &fault.Fault{Code: CodeRoot, Class: fault.Usage, Op: "read the trusted root", Err: err,
		Fix: "give sigstore's trusted_root.json of the instance that signs: --trusted-root FILE; " +
			"of the public one, cosign initialize leaves it below ~/.sigstore/root; of another one, cosign trusted-root create makes it"}
}

// Verify returns the digest of the file, "sha256:<hex>", that the sigstore bundle with this
// text is a signature for, and who signed it. It fails with a *trust.Unproven.
func (v *Verifier) Verify(text []byte, predicateType string) (digest, by string, err error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return "", "", unread(err)
	}
	content, err := b.VerificationContent()
	if err != nil {
		return "", "", unread(err)
	}
	signer, err := v.signer(content)
	if err != nil {
		return "", "", err
	}
	sum, err := signs(&b, predicateType)
	if err != nil {
		return "", "", unread(err)
	}
	_, err = v.verify.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest(algorithm, sum), v.policy))
	var other *verify.ErrNoMatchingCertificateIdentity
	switch {
	case err != nil && signer == nil:
		return "", "", unproven(fixSigner, "it is not signed with the key %s: %w", v.key, err)
	case errors.As(err, &other):
		return "", "", unproven(fixIdentity, "it is signed by %s: %w", name(*signer), errors.Join(other.Unwrap()...))
	case err != nil:
		return "", "", unproven(fixProof, "the trusted root does not prove that %s signed it: %w", name(*signer), err)
	case signer == nil:
		by = "signed with the key " + v.key
	default:
		by = "signed by " + name(*signer)
	}
	return algorithm + ":" + hex.EncodeToString(sum), by, nil
}

// signer is who the certificate is for; nil: the bundle is signed with a key. It fails if the
// verifier is for the other kind.
func (v *Verifier) signer(content verify.VerificationContent) (*certificate.Summary, error) {
	if content.Certificate() == nil {
		if v.key == "" {
			return nil, unproven(fixKey, "it is signed with a key, not by an identity")
		}
		return nil, nil
	}
	signer, err := certificate.SummarizeCertificate(content.Certificate())
	if err != nil {
		return nil, unread(err)
	}
	if v.key != "" {
		return nil, unproven(fixIdentity, "it is not signed with the key %s: it is signed by %s", v.key, name(signer))
	}
	return &signer, nil
}

// name is who a certificate is for, and who vouched for that.
func name(of certificate.Summary) string {
	return fmt.Sprintf("%s (%s)", of.SubjectAlternativeName, of.Issuer)
}

const (
	algorithm   = "sha256"
	fixIdentity = "ask who publishes it which identity signs, and who vouches for that, and give these: --certificate-identity NAME --certificate-oidc-issuer URL"
	fixKey      = "give the public half of that key: --bundle-key FILE; or have it signed by an identity: cosign attest-blob without --key"
	fixSigner   = "ask its publisher for the public half of the signing key; whoever changes the file signs it again"
	fixProof    = "give the trusted root, as it is today, of the sigstore instance that signed: --trusted-root FILE; if it is, take file and signature again from their publisher, signed with an entry in the transparency log, as cosign does by default"
	fixRead     = "have it written as a sigstore bundle: slipway bundle sign or push with --key, cosign attest-blob --new-bundle-format --bundle FILE.sigstore.json --type slsaprovenance1 --predicate provenance.json FILE, or cosign sign-blob --new-bundle-format --bundle FILE.sigstore.json FILE"
)

func unread(err error) error { return unproven(fixRead, "it cannot be read: %w", bounded.Error(err)) }

func unproven(fix, format string, args ...any) error {
	return &trust.Unproven{Err: fmt.Errorf(format, args...), Fix: fix}
}

// olderStatement is the type of statements that cosign makes.
const olderStatement = "https://in-toto.io/Statement/v0.1"

// signs is the sha256 of the file that the bundle says it signs.
func signs(b *bundle.Bundle, predicateType string) ([]byte, error) {
	content, err := b.SignatureContent()
	if err != nil {
		return nil, err
	}
	if m := content.MessageSignatureContent(); m != nil {
		if m.DigestAlgorithm() != "SHA2_256" {
			return nil, fmt.Errorf("it signs a digest of the kind %s, not SHA2_256", m.DigestAlgorithm())
		}
		return whole(m.Digest())
	}
	statement, err := content.EnvelopeContent().Statement()
	if err != nil {
		return nil, err
	}
	if kind := statement.GetType(); kind != trust.StatementType && kind != olderStatement {
		return nil, fmt.Errorf("it is a statement of the kind %q", kind)
	}
	if statement.GetPredicateType() != predicateType {
		return nil, fmt.Errorf("it states %q, not %s", statement.GetPredicateType(), predicateType)
	}
	if len(statement.GetSubject()) == 0 {
		return nil, errors.New("it names no file")
	}
	sum, err := hex.DecodeString(statement.GetSubject()[0].GetDigest()[algorithm])
	if err != nil {
		return nil, fmt.Errorf("it names no %s: %w", algorithm, err)
	}
	return whole(sum)
}

func whole(sum []byte) ([]byte, error) {
	if len(sum) != sha256.Size {
		return nil, fmt.Errorf("it names no %s", algorithm)
	}
	return sum, nil
}
