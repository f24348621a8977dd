// Package trust says whether a bundle is the one that its user wants. The files of a bundle
// are compared with its index, and whoever writes the files can write the index: something
// outside of the bundle has to vouch for that, before anything of the bundle runs.
package trust

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

const (
	// CodeBundle: nothing vouches for the bundle: it is another one than was said, or nothing was.
	CodeBundle fault.Code = "BUN-007"
	// CodeFile: a lock file has no signature by the key or identity that was given.
	CodeFile fault.Code = "LCK-007"
)

// Suffix comes after the name of a file in the name of its signature, a sigstore bundle.
const Suffix = ".sigstore.json"

// Unverified, in place of a digest, takes any bundle.
const Unverified = "none"

// Anchor is what vouches for a bundle. The zero Anchor vouches for none.
type Anchor struct {
	// Digest is that of the bundle's index, "sha256:<hex>", or Unverified.
	Digest string
	// Signer is who signed the bundle, or the one that it was made of; it takes the place of Digest.
	Signer Verifier
	// Name says where Digest or Signer comes from, for people: "--bundle-digest".
	Name string
	// Additions are the user's: a bundle that slipway bundle add made of one that is vouched
	// for is vouched for as well.
	Additions bundle.Additions
}

// Verifier verifies the signatures of a key or an identity; sigstore.Verifier does.
type Verifier interface {
	// Verify returns the digest, "sha256:<hex>", of the file that the signature is for, and who
	// signed it: "signed by …". If a statement is signed, its predicate must have this type. It may
	// fail with an *Unproven.
	Verify(signature []byte, predicateType string) (digest, by string, err error)
}

// Unproven is why a signature proves nothing, and what to do about it.
type Unproven struct {
	Err error
	Fix string
}

func (u *Unproven) Error() string { return u.Err.Error() }

// Unwrap is the cause.
func (u *Unproven) Unwrap() error { return u.Err }

// Vouched is a bundle that an anchor vouches for.
type Vouched struct {
	Digest     string // of the index
	By         string // how, for people: "as --bundle-digest says"
	Unverified bool   // nothing vouches for it, and it is wanted all the same
}

// Warning is what to say about a bundle that is unverified; empty for others.
func (v Vouched) Warning() string {
	if !v.Unverified {
		return ""
	}
	return "the bundle " + v.Digest + " is unverified: anyone who can write to it decides what runs"
}

// Fix is the remedy for an unverified bundle.
const Fix = "give the digest that who built the bundle names: --bundle-digest sha256:… (env SLIPWAY_BUNDLE_DIGEST); " +
	"in a checkout make bundle writes it into .env, and eval \"$(make -s env)\" puts it into the shell; " +
	"or the key with which they signed it: --bundle-key FILE (env SLIPWAY_BUNDLE_KEY); " +
	"or who signed it without a key: --certificate-identity NAME --certificate-oidc-issuer URL --trusted-root FILE; --bundle-digest none takes any bundle"

// fixSignature is the remedy where the signature is not there, or of another bundle.
const fixSignature = "take the bundle and its signature from who built it, and put that beside the index, as " + bundle.SignatureFile + "; whoever changes the bundle signs it again"

// Check fails with CodeBundle unless the anchor vouches for the bundle. read reads a file of
// it by its path, and is asked for a signature only if that has to vouch; nil reads it out of
// the bundle's directory.
func (a Anchor) Check(ctx context.Context, b *bundle.Bundle, read func(file string) ([]byte, error)) (Vouched, error) {
	v := Vouched{Digest: b.ReadDigest(), By: "as " + a.Name + " says"}
	wanted := a.Digest
	switch {
	case a.Signer != nil:
		if read == nil {
			read = func(file string) ([]byte, error) { return bounded.File(b.Path(file), bounded.Generated) }
		}
		text, err := read(bundle.SignatureFile)
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
		if err != nil {
			return v, a.refused(fmt.Errorf("it is %s, and has no signature that can be read: %w", v.Digest, err))
		}
		if wanted, v.By, err = verify(a.Signer, text, ProvenanceType); err != nil {
			return v, a.refused(fmt.Errorf("it is %s, and %w", v.Digest, err))
		}
	case wanted == Unverified:
		v.By, v.Unverified = "unverified", true
		return v, nil
	case wanted == "":
		return v, a.refused(fmt.Errorf("it is %s, and nothing says that this is the one you want", v.Digest))
	}
	if wanted == v.Digest {
		return v, nil
	}
	made, err := a.Additions.Made(wanted, v.Digest)
	if err != nil {
		return v, err
	}
	switch {
	case made:
		v.By += ", with what you have added to it"
		return v, nil
	case a.Signer != nil:
		return v, a.refused(fmt.Errorf("it is %s, and its signature is for %s", v.Digest, wanted))
	}
	return v, a.refused(fmt.Errorf("it is %s, and %s says %s", v.Digest, a.Name, wanted))
}

// CheckFile fails with CodeFile unless the signature beside a lock file with this text, in the
// file with the name and Suffix, is one by the anchor's Signer. It returns how the lock is vouched for.
func (a Anchor) CheckFile(name string, text []byte) (by string, err error) {
	signature, err := bounded.File(name+Suffix, bounded.Generated)
	if err == nil {
		by, err = Vouch(a.Signer, text, signature, ProvenanceType)
	}
	if err != nil {
		return "", &fault.Fault{Code: CodeFile, Class: fault.Preflight, Op: "verify the lock file", Err: err, Fix: fixOf(err,
			"take the lock file and its signature, slipway.lock.json"+Suffix+", from who pushed the bundle, as slipway bundle push DIR HOST/PATH --key KEY or cosign wrote it; who has changed the file signs it again")}
	}
	return by, nil
}

// Vouch fails unless a signature by the signer is for the file with this text. It returns who
// signed it.
func Vouch(signer Verifier, text, signature []byte, predicateType string) (by string, err error) {
	digest, by, err := verify(signer, signature, predicateType)
	if err == nil && digest != bundle.DigestOf(text) {
		err = fmt.Errorf("the file is %s, and the signature is for %s", bundle.DigestOf(text), digest)
	}
	return by, err
}

func verify(signer Verifier, signature []byte, predicateType string) (digest, by string, err error) {
	if digest, by, err = signer.Verify(signature, predicateType); err != nil {
		return "", "", fmt.Errorf("its signature proves nothing: %w", err)
	}
	return digest, by, nil
}

func (a Anchor) refused(err error) error {
	fix := Fix
	if a.Signer != nil {
		fix = fixSignature
	}
	return &fault.Fault{Code: CodeBundle, Class: fault.Preflight, Op: "trust the bundle", Fix: fixOf(err, fix), Err: err}
}

func fixOf(err error, other string) string {
	if u, ok := errors.AsType[*Unproven](err); ok {
		return u.Fix
	}
	return other
}
