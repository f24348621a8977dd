package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Source finds secrets for a run.
type Source interface {
	// Find is what ref refers to.
	Find(ctx context.Context, ref config.SecretRef) (*dagger.Secret, error)
	// Set is a secret with this value.
	Set(name, value string) *dagger.Secret
}

// references are the secrets that a platform may use, by name.
func references(cfg *config.Config) map[string]config.SecretRef {
	all := map[string]config.SecretRef{"smtp.password": cfg.SMTP.Password, "observability.password": cfg.Observability.Password,
		contract.GitPassword: cfg.Git.Password, contract.GitKey: cfg.Git.SSHKey}
	maps.Copy(all, cfg.Platform.Secrets)
	maps.DeleteFunc(all, func(_ string, ref config.SecretRef) bool { return ref == "" })
	return all
}

// Names are the sorted names of the Passwords of a configuration, whether found or not.
func Names(cfg *config.Config) []string { return slices.Sorted(maps.Keys(references(cfg))) }

// Passwords finds the secrets that a platform may use, by name. It reports every missing one.
func Passwords(ctx context.Context, cfg *config.Config, from Source) (map[string]*dagger.Secret, error) {
	all := references(cfg)
	out := map[string]*dagger.Secret{}
	var errs []error
	for _, name := range Names(cfg) {
		secret, err := from.Find(ctx, all[name])
		if err != nil {
			errs = append(errs, Missing("find "+name, err))
			continue
		}
		out[name] = secret
	}
	return out, errors.Join(errs...)
}

// Missing is the fault of a missing secret.
func Missing(op string, err error) error {
	return &fault.Fault{Code: config.CodeNoSecret, Class: fault.Usage, Op: op, Err: err,
		Fix: "put it where the configuration says, or give --secrets FILE (dagger call: before the function)"}
}

// TLSKey is the private key of a user's certificate; nil without one.
func TLSKey(ctx context.Context, cfg *config.Config, from Source) (*dagger.Secret, error) {
	if cfg.TLS.Mode != config.UserCertificate {
		return nil, nil
	}
	key, err := from.Find(ctx, cfg.TLS.Key)
	if err != nil {
		return nil, Missing("find tls.key, the private key of the given certificate", err)
	}
	return key, nil
}

// Kubeconfig reads the access to an existing cluster, reduced to what containers need. It is stored nowhere.
func (f *Flags) Kubeconfig(ctx context.Context, access providers.ExternalCluster, from Source) (*dagger.Secret, error) {
	secret, err := from.Find(ctx, access.Kubeconfig)
	var text string
	if err == nil {
		text, err = secret.Plaintext(ctx)
	}
	if err != nil {
		return nil, noKubeconfig(err)
	}
	extracted, err := kubeconfig.Extract([]byte(text), access.Context, f.beside(access.Kubeconfig))
	if err != nil {
		return nil, err
	}
	return from.Set("kubeconfig", string(extracted)), nil
}

// CheckKubeconfig checks the access to an existing cluster, if this machine has it.
func (f *Flags) CheckKubeconfig(access providers.ExternalCluster) error {
	if name, err := pathOf(access.Kubeconfig); err == nil && name != "" && !usage.InModule() {
		_, missing := os.Stat(name)
		switch err := readable(access.Kubeconfig); {
		case missing == nil && err != nil:
			return noKubeconfig(err)
		case missing != nil && strings.ContainsAny(strings.TrimPrefix(name, filepath.VolumeName(name)), "$:"):
			return noKubeconfig(fmt.Errorf("%w; it is one path, in which no variables are replaced", missing))
		} // what is missing may be on another machine
	}
	text, err := f.AtHand(access.Kubeconfig)
	if text == nil || err != nil {
		return err
	}
	_, err = kubeconfig.Extract(text, access.Context, f.beside(access.Kubeconfig))
	return err
}

func noKubeconfig(err error) error { return Missing("find the kubeconfig of the cluster", err) }

// beside reads files that a kubeconfig names, relative to its directory as kubectl does; nil if it is no file.
func (f *Flags) beside(ref config.SecretRef) func(string) ([]byte, error) {
	own, err := pathOf(ref)
	if err != nil || own == "" {
		return nil
	}
	if f.Brought { // the kubeconfig may be the sender's, too, with a server that gets the token
		return func(string) ([]byte, error) {
			return nil, errors.New("it is read only if --package-key verifies the author of the package that names the kubeconfig")
		}
	}
	return func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(own), name)
		}
		return bounded.File(name, bounded.Written)
	}
}
