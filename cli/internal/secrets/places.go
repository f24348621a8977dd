package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// readable says why the engine would not find what ref refers to on this machine.
// It looks where Dagger's providers of the same names do.
func readable(ref config.SecretRef) error {
	if kind, _ := ref.Split(); module.Active() {
		what := ", as env:NAME in the configuration"
		if kind == config.SecretEnv {
			what = ""
		}
		return fmt.Errorf("%s is on the machine that calls; dagger call hands over what is in --secrets, before the function%s", ref, what)
	}
	switch kind, name := ref.Split(); kind {
	case config.SecretEnv:
		if os.Getenv(name) == "" { // CI sets those that it doesn't have to ""
			return fmt.Errorf("the environment variable %s is not set or is empty", name)
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
			return fmt.Errorf("neither OP_SERVICE_ACCOUNT_TOKEN nor the 1Password command op is available")
		}
		return nil
	}
	name, err := Path(ref)
	if err != nil {
		return err
	}
	info, err := os.Stat(name) // opening a pipe would wait for its writer
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a plain file", name)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", name)
	case info.Size() > bounded.Written: // which Dagger would read whole
		return bounded.TooLarge(name, bounded.Written)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
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

// Path is the path of the file that ref refers to; empty when it refers to none.
func Path(ref config.SecretRef) (string, error) {
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

// isVariable reports whether a reference can name an environment variable so.
func isVariable(name string) bool { return config.SecretRef(config.SecretEnv + ":" + name).Valid() }

// codeSecrets: the file with secrets cannot be read, or a line of it is not
// NAME=value. The error quotes none of it.
const codeSecrets fault.Code = "CFG-013"
