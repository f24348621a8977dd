package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// moduleEnv is set where the Dagger module runs this program: in a container,
// whose variables and files are not those of who called the module.
const moduleEnv = "SLIPWAY_MODULE"

// readable says why the engine would not find what ref refers to on this machine.
// It looks where Dagger's providers of the same names do.
func readable(ref config.SecretRef) error {
	if kind, _ := ref.Split(); os.Getenv(moduleEnv) != "" {
		what := ", as env:NAME in the configuration"
		if kind == config.SecretEnv {
			what = ""
		}
		return fmt.Errorf("%s is on the machine that calls; dagger call hands over what is in --secrets, before the function%s", ref, what)
	}
	switch kind, name := ref.Split(); kind {
	case config.SecretEnv:
		if _, ok := os.LookupEnv(name); !ok {
			return fmt.Errorf("the environment variable %s is not set", name)
		}
		return nil
	case config.SecretCmd:
		return nil // what it prints is known once it runs
	case config.SecretVault:
		if os.Getenv("VAULT_ADDR") == "" {
			return fmt.Errorf("the environment variable VAULT_ADDR is not set, which says where Vault is")
		}
		return nil
	case config.SecretOp:
		if _, err := exec.LookPath("op"); err != nil && os.Getenv("OP_SERVICE_ACCOUNT_TOKEN") == "" {
			return fmt.Errorf("neither is the environment variable OP_SERVICE_ACCOUNT_TOKEN set, nor is there the command op of 1Password")
		}
		return nil
	}
	name, err := fileOf(ref)
	if err != nil {
		return err
	}
	info, err := os.Stat(name) // opening a pipe would wait for its writer
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a plain file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// secret is what ref refers to, for the engine. Its error says why it can't be had.
//
// The engine looks for variables and files where the session's owner runs; in a
// session that this process joined that is another environment, so they are handed
// over. What needs more than a look is asked for at once: a run that has begun
// must not end for want of it.
func (t *target) secret(ctx context.Context, client *dagger.Client, ref config.SecretRef) (*dagger.Secret, error) {
	kind, name := ref.Split()
	if value, ok, err := t.handed(name); err != nil || ok && kind == config.SecretEnv {
		if err != nil {
			return nil, err
		}
		return client.SetSecret(unique(name), value), nil
	}
	if err := readable(ref); err != nil {
		return nil, err
	}
	switch {
	case kind == config.SecretCmd:
		value, err := printed(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("run the command of %s: %w", ref, err)
		}
		return client.SetSecret(unique(kind), value), nil
	case kind == config.SecretVault || kind == config.SecretOp:
		s := client.Secret(ref.URI())
		if _, err := s.Plaintext(ctx); err != nil {
			return nil, fmt.Errorf("ask for %s: %w", ref, err)
		}
		return s, nil
	case t.joined == nil:
		return client.Secret(ref.URI()), nil
	case kind == config.SecretEnv:
		return client.SetSecret(unique(name), os.Getenv(name)), nil
	}
	file, err := fileOf(ref)
	if err != nil {
		return nil, err
	}
	return t.secretFile(client, file)
}

// codeSecrets: the file with secrets cannot be read, or a line of it is not
// NAME=value. The error quotes none of it.
const codeSecrets fault.Code = "CFG-013"

// handed is the value of a variable in the file of --secrets, which comes before the
// environment's.
func (t *target) handed(name string) (value string, ok bool, err error) {
	if t.secrets == "" {
		return "", false, nil
	}
	if t.values == nil {
		text, err := os.ReadFile(t.secrets)
		if err == nil {
			t.values, err = secretLines(string(text))
		}
		if err != nil {
			return "", false, &fault.Fault{Code: codeSecrets, Class: fault.Usage, Op: "read the secrets of --secrets", Err: err,
				Fix: "give a file with NAME=value in each line; a value with several lines is in double quotes, with \\n"}
		}
	}
	value, ok = t.values[name]
	return value, ok, nil
}

// secretLines reads lines NAME=value; a value in double quotes is written as in Go. Empty
// lines and those that begin with # are left out. No error quotes the text.
func secretLines(text string) (map[string]string, error) {
	out := map[string]string{}
	for n, line := range slices.Collect(strings.Lines(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !config.SecretRef(config.SecretEnv+":"+name).Valid() {
			return nil, fmt.Errorf("line %d is not NAME=value", n+1)
		}
		if strings.HasPrefix(value, `"`) {
			plain, err := strconv.Unquote(value)
			if err != nil {
				return nil, fmt.Errorf("the quotes in line %d do not fit, or hold what must be written with \\", n+1)
			}
			value = plain
		}
		out[name] = value
	}
	return out, nil
}

// secretFile is the secret in a file that is there, such as one that a flag names.
func (t *target) secretFile(client *dagger.Client, file string) (*dagger.Secret, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(abs); err != nil {
		return nil, err
	}
	if t.joined == nil {
		return client.Secret("file://" + abs), nil
	}
	value, err := os.ReadFile(abs)
	if err != nil {
		return nil, err
	}
	return client.SetSecret(unique(filepath.Base(abs)), string(value)), nil
}

// givenSecrets are the passwords of the configuration that a platform may have, by
// the names that platform.GivenNames lists. Every one that is not there is reported.
func givenSecrets(opts conductor.Options) (map[string]*dagger.Secret, error) {
	out := map[string]*dagger.Secret{}
	var errs []error
	for _, name := range platform.GivenNames() {
		ref := map[string]config.SecretRef{
			"smtp.password": opts.Config.SMTP.Password, "observability.password": opts.Config.Observability.Password,
		}[name]
		if ref == "" {
			continue
		}
		secret, err := opts.Secret(ref)
		if err != nil {
			errs = append(errs, &fault.Fault{Code: codeNoPassword, Class: fault.Usage, Op: "find " + name, Err: err,
				Fix: "put it where the configuration says, or give --secrets FILE (dagger call: before the function)"})
			continue
		}
		out[name] = secret
	}
	return out, errors.Join(errs...)
}

// printed is what a shell command prints, without the end of its last line.
func printed(ctx context.Context, command string) (string, error) {
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

// unique is a name for a secret in a session that other processes may work in.
func unique(name string) string { return "slipway-" + name + "-" + rand.Text() }

// fileOf is the path of the file that ref refers to; empty when it refers to none.
func fileOf(ref config.SecretRef) (string, error) {
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
