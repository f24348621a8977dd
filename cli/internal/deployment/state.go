package deployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// stateOf is the place of the deployment's state, with the secrets for it. It reports all missing
// secrets at once.
func stateOf(ctx context.Context, all *config.Config, from secrets.Source) (conductor.State, error) {
	cfg := all.State
	if cfg.URL == "" {
		return conductor.State{}, nil
	}
	url, err := store.Below(cfg.URL, all.Global.Name)
	if err != nil {
		return conductor.State{}, err
	}
	out := conductor.State{URL: url, Bucket: cfg.URL, Credentials: map[string]*dagger.Secret{}}
	var errs []error
	find := func(what string, ref config.SecretRef) *dagger.Secret {
		s, err := from.Find(ctx, ref)
		if err != nil {
			errs = append(errs, secrets.Missing("find "+what, err))
		}
		return s
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Credentials)) {
		ref := cfg.Credentials[name]
		out.Credentials[name] = find("state.credentials."+name, ref)
		if out.Credentials[name] == nil {
			continue
		}
		value, ok, err := oneLine(ref)
		if err != nil {
			errs = append(errs, fmt.Errorf("read state.credentials.%s: %w", name, err))
		} else if ok {
			out.Credentials[name] = from.Set("state-"+all.Global.Name+"-"+name, value)
		}
	}
	if cfg.Key != "" {
		out.Key = find("state.key", cfg.Key)
	}
	return out, errors.Join(errs...)
}

// oneLine is the content of the file that ref refers to, without the line break at its end, because
// clouds reject a credential with one. ok is false if ref refers to no file, or the file has several
// lines.
func oneLine(ref config.SecretRef) (text string, ok bool, err error) {
	name, err := secrets.Path(ref)
	if name == "" || err != nil {
		return "", false, err
	}
	data, err := bounded.File(name, bounded.Written)
	text = strings.TrimSpace(string(data))
	return text, err == nil && !strings.Contains(text, "\n"), err
}
