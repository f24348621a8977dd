// Package images opens the images of a run, which come from a bundle or a registry.
package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
)

// Flags say where images come from.
type Flags struct {
	Bundle, Lock, Registry string
	RegistryAuth           string // file with the registry's account; empty: docker login's
	BundleID               string // file with the Dagger id of the bundle's directory, from the module
	Trust                  Trust
	// Brought: the configuration is from an unverified package. No account goes to or comes from a registry that
	// only this configuration names, or is sent in clear.
	Brought bool

	flags *pflag.FlagSet
}

func (f *Flags) AddFlags(set *pflag.FlagSet) {
	f.flags = set
	AddBundle(set, &f.Bundle)
	f.Trust.AddFlags(set)
	set.StringVar(&f.Lock, "lock", os.Getenv("SLIPWAY_LOCK"), "lock file of images in a registry, in place of a bundle (env SLIPWAY_LOCK)")
	set.StringVar(&f.Registry, "registry", "", "registry with these images, HOST[:PORT][/PATH]; replaces the lock file's registry")
	set.StringVar(&f.RegistryAuth, registryAuthFlag, "", "docker's config.json with the account of the nodes; else that of docker login")
	set.StringVar(&f.BundleID, "bundle-id", "", "file with the Dagger id of the bundle's directory")
	_ = set.MarkHidden("bundle-id")
	usage.Group(set, usage.Images, "lock", "registry", registryAuthFlag)
}

// AddBundle declares --bundle.
func AddBundle(set *pflag.FlagSet, dir *string) {
	set.StringVar(dir, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "bundle: a directory with tools and images by digest (env SLIPWAY_BUNDLE)")
	usage.Group(set, usage.Images, "bundle")
}

// codeNoImages: neither a bundle nor a lock was given.
const codeNoImages fault.Code = "BUN-006"

// fromRegistry reports whether images come from a registry. A flag wins over the environment.
func (f *Flags) fromRegistry() bool {
	return f.Lock != "" && (f.flags.Changed("lock") || !f.flags.Changed("bundle"))
}

// Pins are those of this program, and the lock file of a registry; nil: images come from a bundle.
type Pins struct {
	*lock.Lock
	File *lock.File
}

// Pins returns those that apply, and sets cfg.Advanced.Registry if images come from a registry.
func (f *Flags) Pins(cfg *config.Config) (*Pins, error) {
	if f.flags.Changed("lock") && f.flags.Changed("bundle") {
		return nil, usage.Errorf("give either --lock or --bundle")
	}
	if f.RegistryAuth != "" && !f.fromRegistry() {
		return nil, usage.Errorf("--%s goes with --lock: a bundle needs no account", registryAuthFlag)
	}
	own, err := lock.Load()
	if err != nil {
		return nil, err
	}
	if f.fromRegistry() {
		if f.flags.Changed(digestFlag) {
			return nil, usage.Errorf("--%s is about a bundle, and images come from a registry", digestFlag)
		}
		file, text, err := lock.Read(f.Lock)
		if err == nil {
			err = f.verifyLock(text)
		}
		if err == nil {
			err = own.VerifyFile(file)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case f.Registry != "":
			cfg.Advanced.Registry = f.Registry
		case cfg.Advanced.Registry == "":
			cfg.Advanced.Registry = file.Location
		}
		if cfg.Advanced.Registry == "" {
			return nil, &fault.Fault{Code: imageref.CodeNowhere, Class: fault.Usage, Op: "choose the registry of the images",
				Fix: "give --registry host/path, or set advanced.registry in the configuration",
				Err: errors.New("neither the lock nor the configuration names one")}
		}
		return &Pins{own, file}, nil
	}
	if f.Registry != "" {
		return nil, &fault.Fault{Code: imageref.CodeNowhere, Class: fault.Usage, Op: "choose where images come from",
			Fix: "give --lock FILE too: slipway bundle push DIR HOST/PATH --out slipway.lock.json",
			Err: errors.New("--registry goes with --lock FILE, which slipway bundle push writes")}
	}
	if f.Bundle == "" && f.BundleID == "" {
		return nil, &fault.Fault{Code: codeNoImages, Class: fault.Usage, Op: "choose where images come from",
			Fix: "give --bundle DIR (make bundle builds one; env SLIPWAY_BUNDLE), or --lock FILE for images in a registry (slipway bundle push writes it; env SLIPWAY_LOCK)",
			Err: errors.New("neither a bundle nor a lock was given")}
	}
	if f.BundleID == "" { // else the engine has it
		if _, err := bundle.Read(f.Bundle); err != nil {
			return nil, err
		}
	}
	return &Pins{Lock: own}, nil
}

// verifyLock verifies the lock file's signature if a key or an identity is given.
func (f *Flags) verifyLock(text []byte) error {
	way, err := f.Trust.way()
	if err != nil {
		return err
	}
	if way == byDigest {
		return nil
	}
	a, err := f.Trust.Anchor()
	if err != nil {
		return err
	}
	_, err = a.CheckFile(f.Lock, text)
	return err
}

// Check verifies the bundle, if this machine has it. Call Pins before.
func (f *Flags) Check(ctx context.Context) error {
	b, err := f.Here()
	if err != nil || b == nil {
		return err
	}
	_, err = f.Trust.Check(ctx, b)
	return err
}

// Digest is the digest of the bundle's index or of the lock; empty if only the engine has the bundle.
func (f *Flags) Digest() (string, error) {
	if f.fromRegistry() {
		text, err := bounded.File(f.Lock, bounded.Generated)
		return fmt.Sprintf("sha256:%x", sha256.Sum256(text)), err
	}
	b, err := f.Here()
	if err != nil || b == nil {
		return "", err
	}
	return b.ReadDigest(), nil
}

// Here is the bundle if images come from one on this machine; else nil.
func (f *Flags) Here() (*bundle.Bundle, error) {
	if f.fromRegistry() || f.BundleID != "" {
		return nil, nil
	}
	return bundle.Read(f.Bundle)
}

// Given reports whether a bundle on this machine, or a lock, was given.
func (f *Flags) Given() bool { return f.Bundle != "" || f.Lock != "" || f.Registry != "" }

// Describe returns the images, and the manifests of a bundle, without an engine. It changes cfg as Pins does.
func (f *Flags) Describe(ctx context.Context, cfg *config.Config, provider providers.Provider) (*containers.Images, fs.FS, error) {
	pins, err := f.Pins(cfg)
	if err != nil {
		return nil, nil, err
	}
	if f.fromRegistry() {
		registry := strings.TrimSuffix(cfg.Advanced.Registry, "/")
		images := containers.DescribeLock(pins.File, registry)
		return images, nil, reachable(cfg, images, provider, registry)
	}
	b, _, err := f.Trust.Read(ctx, f.Bundle)
	if err != nil {
		return nil, nil, err
	}
	return containers.Describe(b), os.DirFS(b.Path("manifests")), nil
}

// Open opens the images of the run, from the registry or the bundle.
func (f *Flags) Open(ctx context.Context, client *dagger.Client, cfg *config.Config, fresh bool, pins *Pins, provider providers.Provider) (*containers.Images, error) {
	if !f.fromRegistry() {
		dir, err := session.Directory(client, f.Bundle, f.BundleID, fresh)
		if err != nil {
			return nil, err
		}
		anchor, err := f.Trust.Anchor()
		if err != nil {
			return nil, err
		}
		return containers.FromBundle(ctx, client, dir, anchor)
	}
	platform, err := client.DefaultPlatform(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the engine for its platform: %w", err)
	}
	registry := strings.TrimSuffix(cfg.Advanced.Registry, "/")
	images, err := containers.FromRegistry(ctx, client, pins.File, registry, string(platform))
	if err != nil {
		return nil, err
	}
	if err := reachable(cfg, images, provider, registry); err != nil {
		return nil, err
	}
	return images, f.pullSecret(ctx, client, cfg, images, provider, registry, pins.File.Location)
}

// reachable fails unless the cluster's nodes have an address for the registry.
func reachable(cfg *config.Config, images *containers.Images, provider providers.Provider, registry string) error {
	environment, err := stages.EnvironmentOf(provider, stages.DeploymentOf(cfg))
	if err != nil {
		return err
	}
	setting := ""
	switch {
	case environment.External != nil:
		setting = `registry: "registry.internal:5000/slipway"`
		if environment.External.Registry != "" {
			images.Move(registry, environment.External.Registry)
			return nil
		}
	case environment.Local != nil:
		setting, images.Pulls = `registryMirror: "http://192.0.2.1:5000/slipway"`, true
		if environment.Local.Mirror != "" {
			images.Mirror = environment.Local.Mirror
		}
	}
	if setting == "" || images.Mirror != "" {
		return nil
	}
	return &fault.Fault{Code: imageref.CodeNowhere, Class: fault.Usage, Op: "choose where the cluster's node pulls images",
		Fix: "set the address of the registry's machine: " + cfg.Provider + ": {" + setting + "}",
		Err: fmt.Errorf("%s is the engine's own machine, which the node cannot reach under this address", registry)}
}

const registryAuthFlag = "registry-auth"

// pullSecret hands the account with which the nodes pull to the engine, if there is one. named is the lock's registry.
func (f *Flags) pullSecret(ctx context.Context, client *dagger.Client, cfg *config.Config, images *containers.Images, provider providers.Provider, registry, named string) error {
	environment, err := stages.EnvironmentOf(provider, stages.DeploymentOf(cfg))
	if err != nil {
		return err
	}
	nodes := registry
	switch {
	case environment.Local != nil:
		nodes = images.Mirror
	case environment.External == nil:
		return nil
	case environment.External.Registry != "":
		nodes = environment.External.Registry
	}
	a, err := registries.Find(ctx, f.RegistryAuth, hostOf(nodes), hostOf(registry))
	if err == nil && a != nil && f.Brought {
		err = f.checkAccount(nodes, registry, named)
	}
	if err == nil && a != nil && environment.External != nil {
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
	// The same name in all processes of a session, so that a deployment's node is one service.
	images.PullSecret = client.SetSecret("slipway-registry-account-"+cfg.Global.Name, string(text.Reveal()))
	return nil
}

// checkAccount rejects an account unless the user or the lock named both registries, the nodes' and the account's,
// and TLS protects it.
func (f *Flags) checkAccount(nodes, registry, named string) error {
	host := hostOf(cmp.Or(f.Registry, named))
	if hostOf(nodes) == host && hostOf(registry) == host && !strings.HasPrefix(nodes, "http://") {
		return nil
	}
	return &fault.Fault{
		Code: registries.CodeAccount, Class: fault.Preflight, Op: "let the cluster's nodes pull from " + hostOf(nodes),
		Err: fmt.Errorf("your account of %s would go to %s, and only the package names that registry or asks for http", hostOf(registry), redact.OneLine(nodes)),
		Fix: "verify who signed the package: --package-key FILE; or name the registry: --registry HOST/PATH, without http; or pull without an account: --" + registryAuthFlag + " FILE, where FILE contains {}",
	}
}

// hostOf returns host[:port] of a registry or URL.
func hostOf(registry string) string {
	if _, rest, ok := strings.Cut(registry, "://"); ok {
		registry = rest
	}
	host, _, _ := strings.Cut(registry, "/")
	return host
}
