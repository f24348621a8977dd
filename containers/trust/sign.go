package trust

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// Sign is the content of bundle.SignatureFile: a statement about the bundle's index with its
// provenance, signed with key. It compares every file with the index before. It fails with
// the codes of bundle.Verify.
func Sign(ctx context.Context, b *bundle.Bundle, key crypto.Signer) ([]byte, error) {
	return signBundle(ctx, b, Subject{Name: bundle.IndexFile, Digest: digestSet(b.ReadDigest())}, key)
}

// SignFile is Sign for the lock file of that name and text, which says where a push has put
// the bundle.
func SignFile(ctx context.Context, b *bundle.Bundle, name string, text []byte, key crypto.Signer) ([]byte, error) {
	return signBundle(ctx, b, SubjectOf(name, text), key)
}

// SubjectOf is the file of that name and text.
func SubjectOf(name string, text []byte) Subject {
	return Subject{Name: name, Digest: digestSet(bundle.DigestOf(text))}
}

func digestSet(digest string) map[string]string {
	return map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}
}

// signBundle is a statement about subject, with what the bundle was built from.
func signBundle(ctx context.Context, b *bundle.Bundle, subject Subject, key crypto.Signer) ([]byte, error) {
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	text, err := bounded.File(b.Path(bundle.ProvenanceFile), bounded.Generated)
	if err != nil {
		return nil, unknown(err)
	}
	var of Provenance
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, unknown(fmt.Errorf("read %s: %w", bundle.ProvenanceFile, err))
	}
	for _, i := range b.Index.Images {
		if i.Added() {
			of.BuildDefinition.ResolvedDependencies = append(of.BuildDefinition.ResolvedDependencies,
				Dependency{Name: i.Name, Digest: digestSet(i.Digest)})
		}
	}
	return Statement[Provenance]{
		Type: StatementType, PredicateType: ProvenanceType, Predicate: of,
		Subject: []Subject{subject},
	}.Sign(key)
}

func unknown(err error) error {
	return &fault.Fault{Code: bundle.CodeContent, Class: fault.Preflight, Op: "sign the bundle", Fix: bundle.Fix,
		Err: fmt.Errorf("it does not say what it was built from: %w", err)}
}
