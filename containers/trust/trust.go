// Package trust says whether a bundle is the one that its user wants. The files of a bundle
// are compared with its index, and whoever writes the files can write the index: something
// outside of the bundle has to vouch for that, before anything of the bundle runs.
package trust

import (
	"context"
	"crypto"
	"fmt"
	"os"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// CodeBundle: nothing vouches for the bundle: it is another one than was said, or nothing was.
const CodeBundle fault.Code = "BUN-007"

// Unverified, in place of a digest, takes any bundle.
const Unverified = "none"

// Anchor is what vouches for a bundle. The zero Anchor vouches for none.
type Anchor struct {
	// Digest is that of the bundle's index, "sha256:<hex>", or Unverified.
	Digest string
	// Key signed the bundle, or the one that it was made of; it takes the place of Digest.
	Key crypto.PublicKey
	// Name says where Digest or Key comes from, for people: "--bundle-digest".
	Name string
	// Additions are the user's: a bundle that slipway bundle add made of one that is vouched
	// for is vouched for as well.
	Additions bundle.Additions
}

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
	return "the bundle " + v.Digest + " is unverified: whoever can write to it decides what runs"
}

// Fix is the remedy for an unverified bundle.
const Fix = "give the digest that who built the bundle names: --bundle-digest sha256:… (env SLIPWAY_BUNDLE_DIGEST); " +
	"in a checkout make bundle writes it into .env, and eval \"$(make -s env)\" puts it into the shell; " +
	"or the key with which they signed it: --bundle-key FILE (env SLIPWAY_BUNDLE_KEY); --bundle-digest none takes any bundle"

// Check fails with CodeBundle unless the anchor vouches for the bundle. signature reads its
// bundle.SignatureFile, and is asked only if there is a key; nil reads it out of the bundle's
// directory.
func (a Anchor) Check(ctx context.Context, b *bundle.Bundle, signature func() ([]byte, error)) (Vouched, error) {
	v := Vouched{Digest: b.ReadDigest(), By: "as " + a.Name + " says"}
	wanted := a.Digest
	switch {
	case a.Key != nil:
		if signature == nil {
			signature = func() ([]byte, error) { return os.ReadFile(b.Path(bundle.SignatureFile)) }
		}
		text, err := signature()
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
		if err != nil {
			return v, refused(fmt.Errorf("it is %s, and has no signature that can be read: %w", v.Digest, err))
		}
		var id string
		if wanted, id, err = signed(ctx, text, a.Key); err != nil {
			return v, refused(fmt.Errorf("it is %s, and %w", v.Digest, err))
		}
		v.By = "signed with the key " + id
	case wanted == Unverified:
		v.By, v.Unverified = "unverified", true
		return v, nil
	case wanted == "":
		return v, refused(fmt.Errorf("it is %s, and nothing says that this is the one you want", v.Digest))
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
	case a.Key != nil:
		return v, refused(fmt.Errorf("it is %s, and its signature is for %s", v.Digest, wanted))
	}
	return v, refused(fmt.Errorf("it is %s, and %s says %s", v.Digest, a.Name, wanted))
}

func refused(err error) error {
	return &fault.Fault{Code: CodeBundle, Class: fault.Preflight, Op: "trust the bundle", Fix: Fix, Err: err}
}
