package images

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/pullsecret"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/conductor"
)

const registryAuthFlag = "registry-auth"

// pullSecret finds the account with which a cluster's nodes pull from the registry, if there is
// one, and hands it to the engine. The nodes may know the registry by another name. named is the
// registry in the lock.
func (f *Flags) pullSecret(ctx context.Context, client *dagger.Client, cfg *config.Config, images *containers.Images, provider providers.Provider, registry, named string) error {
	site, err := conductor.SiteOf(provider, conductor.DeploymentOf(cfg))
	if err != nil {
		return err
	}
	nodes := registry
	switch {
	case site.Node != nil:
		nodes = images.Mirror
	case site.Access == nil:
		return nil
	case site.Access.Registry != "":
		nodes = site.Access.Registry
	}
	a, err := pullsecret.Find(ctx, f.RegistryAuth, hostOf(nodes), hostOf(registry))
	if err == nil && a != nil && f.Brought {
		err = f.vouched(nodes, registry, named)
	}
	if err == nil && a != nil && site.Access != nil {
		err = a.ForKubelet()
	}
	if err != nil || a == nil {
		return err
	}
	text, err := a.Config()
	if err != nil {
		return err
	}
	if images.PullSecretDigest, err = a.Digest(); err != nil {
		return err
	}
	// The name is the same in all processes that share a session, for a deployment's node to be
	// one service. Whether its account is theirs, its ID tells.
	images.PullSecret = client.SetSecret("slipway-registry-account-"+cfg.Global.Name, string(text.Reveal()))
	return nil
}

// vouched refuses an account unless the user, or the lock, named both registries: where the nodes
// send it, and whose it may be, as the nodes' registry gets the account of the other. Whether it is
// sent in clear is not for a package either.
func (f *Flags) vouched(nodes, registry, named string) error {
	host := hostOf(cmp.Or(f.Registry, named))
	if hostOf(nodes) == host && hostOf(registry) == host && !strings.HasPrefix(nodes, "http://") {
		return nil
	}
	return &fault.Fault{
		Code: pullsecret.Code, Class: fault.Preflight, Op: "let the cluster's nodes pull from " + hostOf(nodes),
		Err: fmt.Errorf("your account of %s would go to %s, and only the package names that registry or asks for http", hostOf(registry), redact.OneLine(nodes)),
		Fix: "verify who signed the package: --package-key FILE; or name the registry: --registry HOST/PATH, without http; or pull without an account: --" + registryAuthFlag + " FILE, where FILE contains {}",
	}
}

// hostOf is host[:port] of a registry, which may be a URL.
func hostOf(registry string) string {
	if _, rest, ok := strings.Cut(registry, "://"); ok {
		registry = rest
	}
	host, _, _ := strings.Cut(registry, "/")
	return host
}
