// Package secrets finds the secrets that a configuration refers to, and hands them to
// the Dagger engine.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// Flags say where secrets are, besides the places that a configuration names.
type Flags struct {
	SecretsFile string
	// Brought says that the configuration is that of a package nobody vouched for: no file is read
	// because a kubeconfig that it names says so.
	Brought bool
}

// AddFlags declares them.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.SecretsFile, "secrets", "", "file with values of env:NAME, one NAME=value per line; wins over the environment")
	usage.Group(set, usage.Deployment, "secrets")
}

// Finder hands secrets to a Dagger session. It is safe for concurrent use.
type Finder struct {
	Flags
	Client *dagger.Client

	mu    sync.Mutex
	found map[config.SecretRef]*dagger.Secret
}

// Find is what ref refers to, for the engine. Its error says why it can't be had. What
// was found once is not looked for again: a command runs once.
//
// The engine would look for variables and files where the session's owner runs, which may be in
// another environment, so this process hands them over. It fetches everything at once: a run that
// has begun must not end for want of it.
func (f *Finder) Find(ctx context.Context, ref config.SecretRef) (*dagger.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.found[ref]; s != nil {
		return s, nil
	}
	s, err := f.find(ctx, ref)
	if err == nil {
		if f.found == nil {
			f.found = map[config.SecretRef]*dagger.Secret{}
		}
		f.found[ref] = s
	}
	return s, err
}

func (f *Finder) find(ctx context.Context, ref config.SecretRef) (*dagger.Secret, error) {
	kind, name := ref.Split()
	value, ok, err := f.handed(name)
	switch {
	case err != nil:
		return nil, err
	case ok && kind == config.SecretEnv && value == "":
		return nil, emptyIn(name)
	case ok && kind == config.SecretEnv:
		return f.Client.SetSecret(unique(name), value), nil
	}
	if err := readable(ref); err != nil {
		return nil, err
	}
	switch kind {
	case config.SecretVault, config.SecretOp:
		s := f.Client.Secret(ref.URI())
		if _, err := s.Plaintext(ctx); err != nil {
			return nil, fmt.Errorf("ask for %s: %w", ref, err)
		}
		return s, nil
	case config.SecretCmd:
		if value, err = printed(ctx, name); err != nil {
			return nil, fmt.Errorf("run the command of %s: %w", ref, err)
		}
	default:
		text, err := here(ref)
		if err != nil {
			return nil, err
		}
		if !utf8.Valid(text) { // SetSecret takes only text
			return f.Client.Secret(ref.URI()), nil
		}
		value = string(text)
	}
	return f.Client.SetSecret(unique(kind), value), nil
}

// handed is the value of a variable in the file of --secrets, which comes before the
// environment's.
func (f *Flags) handed(name string) (value string, ok bool, err error) {
	if f.SecretsFile == "" {
		return "", false, nil
	}
	values, err := variables(f.SecretsFile)
	value, ok = values[name]
	return value, ok, err
}

// variables are those in a file of --secrets.
func variables(file string) (map[string]string, error) {
	var values map[string]string
	text, err := bounded.File(file, bounded.Written)
	if err == nil {
		values, err = Lines(string(text), isVariable)
	}
	if err != nil {
		return nil, &fault.Fault{Code: codeSecrets, Class: fault.Usage, Op: "read the secrets of --secrets", Err: err,
			Fix: "give a file with NAME=value in each line; put a value with $, # or several lines in single quotes"}
	}
	return values, nil
}

// Check finds what is wrong with the file of --secrets: a line that cannot be read, and a
// variable without a value that the configuration refers to.
func (f *Flags) Check(cfg *config.Config) error {
	if f.SecretsFile == "" {
		return nil
	}
	values, err := variables(f.SecretsFile)
	errs := []error{err}
	for _, name := range Names(cfg) {
		kind, variable := references(cfg)[name].Split()
		if value, ok := values[variable]; ok && kind == config.SecretEnv && value == "" {
			errs = append(errs, Missing("find "+name, emptyIn(variable)))
		}
	}
	return errors.Join(errs...)
}

// emptyIn says that a variable has no value in the file of --secrets.
func emptyIn(variable string) error {
	return fmt.Errorf("%s is empty in the file of --secrets", variable)
}

// AtHand is the value that ref refers to where it is in the file of --secrets or, as of the
// function of that name, on this machine.
func (f *Flags) AtHand(ref config.SecretRef) ([]byte, error) {
	if kind, name := ref.Split(); kind == config.SecretEnv {
		if value, ok, err := f.handed(name); ok || err != nil {
			return []byte(value), err
		}
	}
	return AtHand(ref), nil
}

// Set is a secret with a value that this process has.
func (f *Finder) Set(name, value string) *dagger.Secret {
	return f.Client.SetSecret(unique(name), value)
}

// AtHand is the value that ref refers to where that is a variable or a file of this
// machine; nil where it is not, or cannot be read.
func AtHand(ref config.SecretRef) []byte {
	value, _ := here(ref)
	return value
}
