package images

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/key"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
)

// Trust is the flags that say which bundle is wanted.
type Trust struct {
	digest, key string

	set *pflag.FlagSet
}

const (
	digestFlag = "bundle-digest"
	keyFlag    = "bundle-key"
	envDigest  = "SLIPWAY_BUNDLE_DIGEST"
	envKey     = "SLIPWAY_BUNDLE_KEY"
)

// AddFlags declares them.
func (t *Trust) AddFlags(set *pflag.FlagSet) {
	t.set = set
	set.StringVar(&t.digest, digestFlag, os.Getenv(envDigest), "digest of the bundle's index, sha256:…: no other bundle is used; none: any is (env "+envDigest+", as make env sets it)")
	set.StringVar(&t.key, keyFlag, os.Getenv(envKey), "public key, PEM, that the bundle (slipway bundle sign) or the lock (slipway bundle push --key) must be signed with: a file, or env:NAME; in place of a digest (env "+envKey+")")
}

// byKey says whether a key vouches for the bundle rather than a digest: what a flag says wins
// over the environment, in which the key wins.
func (t *Trust) byKey() bool {
	return t.key != "" && (t.set.Changed(keyFlag) || !t.set.Changed(digestFlag))
}

// Given reports whether it was said which bundle is wanted.
func (t *Trust) Given() bool { return t.key != "" || t.digest != "" }

// Anchor is what vouches for a bundle.
func (t *Trust) Anchor() (trust.Anchor, error) {
	if t.set.Changed(keyFlag) && t.set.Changed(digestFlag) {
		return trust.Anchor{}, usage.Errorf("give either --%s or --%s", digestFlag, keyFlag)
	}
	name := func(flag, env string) string {
		if t.set.Changed(flag) {
			return "--" + flag
		}
		return env
	}
	var a trust.Anchor
	var err error
	if t.byKey() {
		a.Name = name(keyFlag, envKey)
		a.Key, err = key.Public(t.key)
	} else {
		a.Name, a.Digest = name(digestFlag, envDigest), t.digest
		if a.Digest != "" && a.Digest != trust.Unverified && !bundle.IsDigest(a.Digest) {
			err = usage.Errorf("%s is %q; give sha256: and 64 hexadecimal digits, or none", a.Name, a.Digest)
		}
	}
	if err != nil {
		return a, err
	}
	a.Additions, err = bundle.OwnAdditions()
	return a, err
}

// Check fails unless the bundle is the one that is wanted.
func (t *Trust) Check(ctx context.Context, b *bundle.Bundle) (trust.Vouched, error) {
	a, err := t.Anchor()
	if err != nil {
		return trust.Vouched{}, err
	}
	return a.Check(ctx, b, nil)
}
