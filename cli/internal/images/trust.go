package images

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
)

// Trust is the flags that say which bundle is wanted.
type Trust struct {
	Digest string

	set *pflag.FlagSet
}

const (
	digestFlag = "bundle-digest"
	envDigest  = "SLIPWAY_BUNDLE_DIGEST"
)

// AddFlags declares them.
func (t *Trust) AddFlags(set *pflag.FlagSet) {
	t.set = set
	set.StringVar(&t.Digest, digestFlag, os.Getenv(envDigest), "digest of the bundle's index, sha256:…: no other bundle is used; none: any is (env "+envDigest+", as make env sets it)")
}

// Anchor is what vouches for a bundle.
func (t *Trust) Anchor() (trust.Anchor, error) {
	a := trust.Anchor{Digest: t.Digest, Name: envDigest}
	if t.set.Changed(digestFlag) {
		a.Name = "--" + digestFlag
	}
	if a.Digest != "" && a.Digest != trust.Unverified && !bundle.IsDigest(a.Digest) {
		return a, usage.Errorf("%s is %q; give sha256: and 64 hexadecimal digits, or none", a.Name, a.Digest)
	}
	var err error
	a.Additions, err = bundle.OwnAdditions()
	return a, err
}

// Check fails unless the bundle is the one that is wanted.
func (t *Trust) Check(b *bundle.Bundle) (trust.Vouched, error) {
	a, err := t.Anchor()
	if err != nil {
		return trust.Vouched{}, err
	}
	return a.Check(b)
}
