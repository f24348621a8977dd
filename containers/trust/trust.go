// Package trust says whether a bundle is the one that its user wants. The files of a bundle
// are compared with its index, and whoever writes the files can write the index: something
// outside of the bundle has to vouch for that, before anything of the bundle runs.
package trust

import (
	"fmt"

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
	// Name says where Digest comes from, for people: "--bundle-digest".
	Name string
	// Additions are the user's: a bundle that slipway bundle add made of the one with Digest
	// is vouched for as well.
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
	"--bundle-digest none takes any bundle"

// Check fails with CodeBundle unless the anchor vouches for the bundle.
func (a Anchor) Check(b *bundle.Bundle) (Vouched, error) {
	v := Vouched{Digest: b.ReadDigest(), By: "as " + a.Name + " says"}
	switch a.Digest {
	case Unverified:
		v.By, v.Unverified = "unverified", true
		return v, nil
	case v.Digest:
		return v, nil
	case "":
		return v, refused(fmt.Errorf("it is %s, and nothing says that this is the one you want", v.Digest))
	}
	made, err := a.Additions.Made(a.Digest, v.Digest)
	if err != nil {
		return v, err
	}
	if !made {
		return v, refused(fmt.Errorf("it is %s, and %s says %s", v.Digest, a.Name, a.Digest))
	}
	v.By += ", with what you have added to it"
	return v, nil
}

func refused(err error) error {
	return &fault.Fault{Code: CodeBundle, Class: fault.Preflight, Op: "trust the bundle", Fix: Fix, Err: err}
}
