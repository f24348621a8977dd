package secrets

import (
	"context"
	"errors"
	"maps"
	"slices"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Source finds secrets for a run.
type Source interface {
	// Find is what ref refers to.
	Find(ctx context.Context, ref config.SecretRef) (*dagger.Secret, error)
	// Set is a secret with this value.
	Set(name, value string) *dagger.Secret
}

// references are the secrets of the configuration that a platform may have, by name.
func references(cfg *config.Config) map[string]config.SecretRef {
	all := map[string]config.SecretRef{"smtp.password": cfg.SMTP.Password, "observability.password": cfg.Observability.Password,
		contract.GitPassword: cfg.Git.Password, contract.GitKey: cfg.Git.SSHKey}
	maps.Copy(all, cfg.Platform.Secrets)
	maps.DeleteFunc(all, func(_ string, ref config.SecretRef) bool { return ref == "" })
	return all
}

// Names are the names of the Passwords of a configuration, sorted, whether they are there
// or not.
func Names(cfg *config.Config) []string { return slices.Sorted(maps.Keys(references(cfg))) }

// Passwords are the secrets of the configuration that a platform may have, by the names
// that platform.GivenNames lists and those of platform.secrets. Every one that is not
// there is reported.
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

// Missing is the fault of a secret that is not where the configuration says.
func Missing(op string, err error) error {
	return &fault.Fault{Code: config.CodeNoSecret, Class: fault.Usage, Op: op, Err: err,
		Fix: "put it where the configuration says, or give --secrets FILE (dagger call: before the function)"}
}

// TLSKey is the private key of a given certificate; nil where no certificate is given.
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
