package trust

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/provenance"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/dsse"
)

const (
	// CodeSign: the bundle cannot be signed.
	CodeSign fault.Code = "BUN-008"
	// CodeFile: a lock file is not signed with the key, or by the identity, that was given.
	CodeFile fault.Code = "LCK-007"
)

// What is behind the name of a lock file in that of its signature, with a key and without one.
const (
	FileSuffix    = ".dsse.json"
	KeylessSuffix = ".sigstore.json"
)

// Sign is the content of bundle.SignatureFile: a statement about the bundle's index with its
// provenance, signed with key. It compares every file with the index before. It fails with
// the codes of bundle.Verify, and with CodeSign.
func Sign(ctx context.Context, b *bundle.Bundle, key crypto.Signer) ([]byte, error) {
	return sign(ctx, b, dsse.Subject{Name: bundle.IndexFile, Digest: digestSet(b.ReadDigest())}, key)
}

// SignFile is Sign for the lock file of that name and text, which says where a push has put
// the bundle.
func SignFile(ctx context.Context, b *bundle.Bundle, name string, text []byte, key crypto.Signer) ([]byte, error) {
	return sign(ctx, b, dsse.Subject{Name: name, Digest: digestSet(digestOf(text))}, key)
}

// CheckFile fails with CodeFile unless a signature vouches for a lock file with this text: by
// the anchor's key, or by its Keyless. read gets the suffix of the signature's file. It returns
// how it is vouched for.
func (a Anchor) CheckFile(ctx context.Context, text []byte, read func(suffix string) ([]byte, error)) (by string, err error) {
	suffix, fix := FileSuffix, "take the lock file, its signature and the public key from who pushed the bundle: slipway bundle push DIR --to host/path --key KEY writes both"
	if a.Keyless != nil {
		suffix, fix = KeylessSuffix, "take the lock file and its signature, slipway.lock.json"+KeylessSuffix+", from who pushed the bundle; who has changed the file signs it again"
	}
	signature, err := read(suffix)
	digest := ""
	if err == nil {
		digest, by, err = a.signed(ctx, signature)
	}
	if err == nil && digest != digestOf(text) {
		err = fmt.Errorf("the file is %s, and the signature is for %s", digestOf(text), digest)
	}
	if err != nil {
		return "", &fault.Fault{Code: CodeFile, Class: fault.Preflight, Op: "verify the lock file", Err: err, Fix: fixOf(err, fix)}
	}
	return by, nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return algorithm + ":" + hex.EncodeToString(sum[:])
}

func digestSet(digest string) map[string]string {
	return map[string]string{algorithm: strings.TrimPrefix(digest, algorithm+":")}
}

const algorithm = "sha256"

// sign is a statement about subject, with what the bundle was built from.
func sign(ctx context.Context, b *bundle.Bundle, subject dsse.Subject, key crypto.Signer) ([]byte, error) {
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	text, err := bounded.File(b.Path(bundle.ProvenanceFile), bounded.Generated)
	if err != nil {
		return nil, NotSigned(fmt.Errorf("it does not say what it was built from: %w", err))
	}
	var of provenance.Provenance
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, NotSigned(fmt.Errorf("read %s: %w", bundle.ProvenanceFile, err))
	}
	for _, i := range b.Index.Images {
		if i.Added() {
			of.BuildDefinition.ResolvedDependencies = append(of.BuildDefinition.ResolvedDependencies,
				provenance.Dependency{Name: i.Name, Digest: digestSet(i.Digest)})
		}
	}
	return dsse.Sign(ctx, dsse.Statement[provenance.Provenance]{
		Type: dsse.StatementType, PredicateType: provenance.PredicateType, Predicate: of,
		Subject: []dsse.Subject{subject},
	}, key)
}

// NotSigned is the fault of a bundle that cannot be signed.
func NotSigned(err error) error {
	return &fault.Fault{Code: CodeSign, Class: fault.Preflight, Op: "sign the bundle", Err: err,
		Fix: "sign one that make bundle of this Slipway has built, in a directory that you may write to: slipway bundle sign DIR --key KEY"}
}

// olderStatement is the type of statements that cosign makes.
const olderStatement = "https://in-toto.io/Statement/v0.1"

// signed is the digest of the file that a signature is for, and how that is vouched for.
func (a Anchor) signed(ctx context.Context, text []byte) (digest, by string, err error) {
	if a.Keyless != nil {
		if digest, by, err = a.Keyless.Verify(text); err != nil {
			return "", "", fmt.Errorf("its signature proves nothing: %w", err)
		}
		return digest, by, nil
	}
	digest, id, err := signed(ctx, text, a.Key)
	return digest, "signed with the key " + id, err
}

// signed is the digest of the file that a signature of the key is for, and the key's id.
func signed(ctx context.Context, text []byte, key crypto.PublicKey) (digest, id string, err error) {
	e, s, err := dsse.Open[json.RawMessage](text)
	if err != nil {
		return "", "", fmt.Errorf("its signature cannot be read: %w", err)
	}
	if id, err = e.Verify(ctx, key); err != nil {
		return "", "", fmt.Errorf("its signature is another one: %w", err)
	}
	if (s.Type != dsse.StatementType && s.Type != olderStatement) || s.PredicateType != provenance.PredicateType {
		return "", "", fmt.Errorf("its signature states %q, %q", s.Type, s.PredicateType)
	}
	for _, subject := range s.Subject {
		if d := algorithm + ":" + subject.Digest[algorithm]; bundle.IsDigest(d) {
			return d, id, nil
		}
	}
	return "", "", errors.New("its signature names no digest")
}
