package images

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
)

// Trust is the flags that say how a bundle is verified.
type Trust struct {
	digest, key string
	root        string // file with a trusted root
	signer      sigstore.Identity

	set *pflag.FlagSet
}

const (
	digestFlag   = "bundle-digest"
	keyFlag      = "bundle-key"
	rootFlag     = "trusted-root"
	identityFlag = "certificate-identity"
	issuerFlag   = "certificate-oidc-issuer"
	envDigest    = "SLIPWAY_BUNDLE_DIGEST"
	envKey       = "SLIPWAY_BUNDLE_KEY"
)

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "SLIPWAY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func (t *Trust) AddFlags(set *pflag.FlagSet) {
	t.set = set
	set.StringVar(&t.digest, digestFlag, os.Getenv(envDigest), "use only the bundle with this digest, sha256:…; none: any (env "+envDigest+")")
	set.StringVar(&t.key, keyFlag, os.Getenv(envKey), "key that bundle or lock must be signed with: file or env:NAME (env "+envKey+")")
	usage.Group(set, usage.Images, digestFlag, keyFlag)
	add := func(to *string, flag, what string) {
		set.StringVar(to, flag, os.Getenv(variable(flag)), what+" (env "+variable(flag)+")")
		usage.Group(set, usage.Images, flag)
	}
	add(&t.signer.Subject, identityFlag, "identity that must have signed; ^… is an expression")
	add(&t.signer.Issuer, issuerFlag, "URL of the identity's issuer")
	add(&t.root, rootFlag, "trusted_root.json of the sigstore that signed")
}

// by is how a bundle is verified.
type by int

const (
	byDigest by = iota
	byKey
	byIdentity
)

// way is how the bundle is verified. A flag wins over the environment; there, key, identity and digest in order.
func (t *Trust) way() (by, error) {
	digest, key := t.set.Changed(digestFlag), t.set.Changed(keyFlag)
	identity := slices.ContainsFunc([]string{identityFlag, issuerFlag, rootFlag}, t.set.Changed)
	switch {
	case key && identity || key && digest || identity && digest:
		return 0, usage.Errorf("give either --%s, --%s or --%s with what belongs to it", digestFlag, keyFlag, identityFlag)
	case identity:
		return byIdentity, nil
	case digest:
		return byDigest, nil
	case t.key != "":
		return byKey, nil
	case t.signer != sigstore.Identity{} || t.root != "":
		return byIdentity, nil
	}
	return byDigest, nil
}

// Given reports whether a flag or variable says how to verify.
func (t *Trust) Given() bool {
	return t.key != "" || t.digest != "" || t.root != "" || t.signer != sigstore.Identity{}
}

// Anchor returns what vouches for a bundle.
func (t *Trust) Anchor() (trust.Anchor, error) {
	name := func(flag, env string) string {
		if t.set.Changed(flag) {
			return "--" + flag
		}
		return env
	}
	var a trust.Anchor
	way, err := t.way()
	if err != nil {
		return a, err
	}
	switch way {
	case byKey:
		a.Name = name(keyFlag, envKey)
		a.Signer, err = secrets.Verifier(t.key)
	case byIdentity:
		a.Name = name(identityFlag, variable(identityFlag))
		a.Signer, err = t.identity()
	default:
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

func (t *Trust) identity() (trust.Verifier, error) {
	switch {
	case t.signer.Subject == "":
		return nil, usage.Errorf("say who signs: --%s NAME", identityFlag)
	case t.signer.Issuer == "":
		return nil, usage.Errorf("say who vouches for who signs: --%s URL", issuerFlag)
	case t.root == "":
		return nil, usage.Errorf("a signature without a key is verified with --%s FILE", rootFlag)
	}
	if _, err := regexp.Compile(t.signer.Subject); t.signer.IsRegexp() && err != nil {
		return nil, usage.Wrap(err)
	}
	text, err := bounded.File(t.root, bounded.Generated)
	if err != nil {
		return nil, sigstore.Unusable(err)
	}
	return sigstore.ByIdentity(text, t.signer)
}

// Check verifies a bundle.
func (t *Trust) Check(ctx context.Context, b *bundle.Bundle) (trust.Vouched, error) {
	a, err := t.Anchor()
	if err != nil {
		return trust.Vouched{}, err
	}
	return a.Check(ctx, b, nil)
}

// Read reads a bundle, and verifies it if a flag or variable says how.
func (t *Trust) Read(ctx context.Context, dir string) (*bundle.Bundle, trust.Vouched, error) {
	b, err := bundle.Read(dir)
	var v trust.Vouched
	if err == nil && t.Given() {
		v, err = t.Check(ctx, b)
	}
	return b, v, err
}
