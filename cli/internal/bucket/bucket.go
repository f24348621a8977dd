// Package bucket opens the bucket with a deployment's state.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// Flags say what opens the bucket with the deployment's state, where the configuration cannot: a
// function of the Dagger module has none of the caller's files and variables.
type Flags struct{ Key, Credentials string }

// AddFlags declares them, hidden.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.Key, "state-key", "", "file with the age identity; replaces state.key")
	set.StringVar(&f.Credentials, "state-credentials", "", "file with NAME=value in each line; replaces state.credentials")
	for _, name := range []string{"state-key", "state-credentials"} {
		_ = set.MarkHidden(name)
	}
}

// ReadCredentials reads the file of --state-credentials; nil without one. Only the variables of
// the store's kind may be in it. No error quotes it.
func (f *Flags) ReadCredentials(cfg *config.Config, stores map[string]store.Opener) (map[string]string, error) {
	if f.Credentials == "" {
		return nil, nil
	}
	bad := func(err error) error {
		return &fault.Fault{Code: config.CodeNoSecret, Class: fault.Usage, Op: "read the credentials for the deployment's state", Err: err,
			Fix: "give a file with lines such as AWS_ACCESS_KEY_ID=… to --state-credentials"}
	}
	if cfg.State.URL == "" {
		return nil, usage.Errorf("--state-credentials goes with --state, or with state.url in the configuration")
	}
	allowed, err := store.CheckURL(cfg.State.URL, store.Options{Openers: stores})
	if err != nil {
		return nil, err
	}
	text, err := bounded.File(f.Credentials, bounded.Written)
	if err != nil {
		return nil, bad(err)
	}
	out, err := secrets.Lines(string(text), func(name string) bool { return slices.Contains(allowed, name) })
	if err != nil {
		return nil, bad(fmt.Errorf("%w with a NAME of %s", err, strings.Join(allowed, ", ")))
	}
	return out, nil
}

// Open says where the deployment's state is, with the secrets for it: those of
// the flags, else those that the configuration refers to. Every one that is not
// there is reported.
func (f *Flags) Open(ctx context.Context, all *config.Config, from secrets.Source, given map[string]string) (conductor.State, error) {
	cfg := all.State
	if cfg.URL == "" {
		if f.Key != "" {
			return conductor.State{}, usage.Errorf("--state-key goes with --state, or with state.url in the configuration")
		}
		return conductor.State{}, nil
	}
	url, err := store.Below(cfg.URL, all.Global.Name)
	if err != nil {
		return conductor.State{}, err
	}
	out := conductor.State{URL: url, Bucket: cfg.URL, Credentials: map[string]*dagger.Secret{}}
	set := func(name, value string) *dagger.Secret {
		return from.Set("state-"+all.Global.Name+"-"+name, value)
	}
	for name, value := range given {
		out.Credentials[name] = set(name, value)
	}
	var errs []error
	find := func(what string, ref config.SecretRef) *dagger.Secret {
		s, err := from.Find(ctx, ref)
		if err != nil {
			errs = append(errs, secrets.Missing("find "+what, err))
		}
		return s
	}
	if given == nil {
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
				out.Credentials[name] = set(name, value)
			}
		}
	}
	switch {
	case f.Key != "":
		if out.Key, err = from.File(f.Key); err != nil {
			errs = append(errs, secrets.Missing("find the key of --state-key", err))
		}
	case cfg.Key != "":
		out.Key = find("state.key", cfg.Key)
	}
	return out, errors.Join(errs...)
}

// oneLine is the content of the file that ref refers to, without the end of its
// line, which is no part of a credential: a variable with it is refused by the
// clouds. ok is false for one that is no file or has several lines.
func oneLine(ref config.SecretRef) (text string, ok bool, err error) {
	name, err := secrets.Path(ref)
	if name == "" || err != nil {
		return "", false, err
	}
	data, err := bounded.File(name, bounded.Written)
	text = strings.TrimSpace(string(data))
	return text, err == nil && !strings.Contains(text, "\n"), err
}
