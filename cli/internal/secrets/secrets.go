// Package secrets finds the secrets of a configuration and hands them to the Dagger engine.
package secrets

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
	"github.com/slipway-sh/slipway/fault"
)

// Flags say where secrets are, besides the places that a configuration names.
type Flags struct {
	SecretsFile string
	// Brought: the configuration is from an unverified package. No file that its kubeconfig names is read.
	Brought bool
}

// AddFlags declares --secrets.
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

// Find returns a secret for the engine, and keeps it, so that a command runs once. This process reads variables
// and files itself, because the engine would look where the session's owner runs. It reads at once: a run that has
// begun must not fail for want of a secret.
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
	value, ok, err := f.fromFile(name)
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
		if value, err = output(ctx, name); err != nil {
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

// fromFile is the value of a variable in the file of --secrets.
func (f *Flags) fromFile(name string) (value string, ok bool, err error) {
	if f.SecretsFile == "" {
		return "", false, nil
	}
	values, err := variables(f.SecretsFile)
	value, ok = values[name]
	return value, ok, err
}

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

// Check checks the file of --secrets: its lines, and that no referenced variable is empty.
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

func emptyIn(variable string) error {
	return fmt.Errorf("%s is empty in the file of --secrets", variable)
}

// AtHand is the value of ref in the file of --secrets, in a variable or in a file here; else nil.
func (f *Flags) AtHand(ref config.SecretRef) ([]byte, error) {
	if kind, name := ref.Split(); kind == config.SecretEnv {
		if value, ok, err := f.fromFile(name); ok || err != nil {
			return []byte(value), err
		}
	}
	value, _ := here(ref)
	return value, nil
}

// Set returns a secret with a value of this process.
func (f *Finder) Set(name, value string) *dagger.Secret {
	return f.Client.SetSecret(unique(name), value)
}

// readable returns why ref cannot be read on this machine. It looks where Dagger's own providers do.
func readable(ref config.SecretRef) error {
	kind, _ := ref.Split()
	switch {
	case usage.InModule():
		what := ", as env:NAME in the configuration"
		if kind == config.SecretEnv {
			what = ""
		}
		return fmt.Errorf("%s is on the machine that calls; dagger call hands over what is in --secrets, before the function%s", ref, what)
	case kind == config.SecretVault && os.Getenv("VAULT_ADDR") == "":
		return errors.New("the environment variable VAULT_ADDR is not set, which says where Vault is")
	case kind == config.SecretOp && os.Getenv("OP_SERVICE_ACCOUNT_TOKEN") == "":
		if _, err := exec.LookPath("op"); err != nil {
			return errors.New("neither OP_SERVICE_ACCOUNT_TOKEN nor the 1Password command op is available")
		}
	}
	_, err := here(ref)
	return err
}

// here is the value of a variable or file of this machine; nil for other references.
func here(ref config.SecretRef) ([]byte, error) {
	if kind, name := ref.Split(); kind == config.SecretEnv && !usage.InModule() {
		if value := os.Getenv(name); value != "" { // CI sets those that it doesn't have to ""
			return []byte(value), nil
		}
		return nil, fmt.Errorf("the environment variable %s is not set or is empty", name)
	}
	name, err := pathOf(ref)
	if err != nil || name == "" || usage.InModule() {
		return nil, err
	}
	info, err := os.Stat(name) // opening a pipe would wait for its writer
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", name)
	}
	if err != nil {
		return nil, err
	}
	text, err := bounded.File(name, bounded.Written)
	if line := bytes.TrimRight(text, "\r\n"); !bytes.ContainsRune(line, '\n') {
		text = line // editors end a file with a line break, which clouds reject in a credential
	}
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty", name)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// output is the output of a shell command without its last line break.
func output(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	value := strings.TrimRight(out.String(), "\r\n")
	switch {
	case err != nil:
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	case value == "":
		return "", errors.New("it printed nothing")
	}
	return value, nil
}

// unique returns a name that no other process of the session uses.
func unique(name string) string { return "slipway-" + name + "-" + rand.Text() }

// pathOf is the path of a file reference; empty for others.
func pathOf(ref config.SecretRef) (string, error) {
	kind, name := ref.Split()
	if kind != "file" {
		return "", nil
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	return name, nil
}

func isVariable(name string) bool { return config.SecretRef(config.SecretEnv + ":" + name).Valid() }

// codeSecrets: the file of --secrets is unreadable or has an invalid line. The error quotes none of it.
const codeSecrets fault.Code = "CFG-013"

// The keys that sign and verify are where a command line names them: at a path, or file:PATH or
// env:NAME as in the configuration.

// PrivateKey is the private key at a place, and its text, which must be written nowhere.
func PrivateKey(place string) (crypto.Signer, string, error) {
	text, err := readKey(place)
	if err != nil {
		return nil, "", err
	}
	key, err := trust.PrivateKey(text)
	return key, string(text), err
}

// Verifier verifies signatures with the public key at a place. It fails with trust.CodeKey.
func Verifier(place string) (trust.Verifier, error) {
	text, err := readKey(place)
	if err != nil {
		return nil, err
	}
	public, err := trust.PublicKey(text)
	if err != nil {
		return nil, err
	}
	return sigstore.ByKey(public)
}

func readKey(place string) (text []byte, err error) {
	ref := config.SecretRef(place)
	if kind, _ := ref.Split(); kind == config.SecretEnv || kind == config.SecretFile {
		text, err = here(ref)
	} else {
		text, err = bounded.File(place, bounded.Written)
	}
	if err == nil && len(text) == 0 {
		err = errors.New("it is not there, or empty")
	}
	if err != nil {
		return nil, NoKey(place, err)
	}
	return text, nil
}

// NoKey is the fault of a key that cannot be read.
func NoKey(place string, err error) error {
	return &fault.Fault{Code: trust.CodeKey, Class: fault.Usage, Op: "read the key " + place, Err: err,
		Fix: "name a PEM file, or env:NAME for a variable that contains it: --key; for packages also advanced.save.key in the configuration"}
}
