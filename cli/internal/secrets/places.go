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
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// readable says why what ref refers to cannot be had on this machine. For vault: and op: it looks
// where Dagger's providers of the same names do.
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

// here is the value that ref refers to where that is a variable or a file of this machine; nil for
// what is elsewhere, or known only once a command runs.
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

// pathOf is the path of the file that ref refers to; empty when it refers to none.
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

// isVariable reports whether a reference can name an environment variable so.
func isVariable(name string) bool { return config.SecretRef(config.SecretEnv + ":" + name).Valid() }

// codeSecrets: the file with secrets cannot be read, or a line of it is not
// NAME=value. The error quotes none of it.
const codeSecrets fault.Code = "CFG-013"
