package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
)

// moduleEnv is set where the Dagger module runs this program: in a container,
// whose variables and files are not those of who called the module.
const moduleEnv = "SLIPWAY_MODULE"

// readable says why the engine would not find what ref refers to on this machine.
// It looks where Dagger's providers of the same names do.
func readable(ref config.SecretRef) error {
	if os.Getenv(moduleEnv) != "" {
		return fmt.Errorf("%s is on the machine that calls, and dagger call does not hand it to hooks; "+
			"use slipway there, or let the hook read it from the cluster", ref)
	}
	if kind, name := ref.Split(); kind == "env" {
		if _, ok := os.LookupEnv(name); !ok {
			return fmt.Errorf("the environment variable %s is not set", name)
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

// secret is what ref refers to, for the engine. In a session that this process
// joined the engine would look for it where that one's owner runs, in another
// environment, so it is handed over.
func (t *target) secret(client *dagger.Client, ref config.SecretRef) (*dagger.Secret, error) {
	if t.joined == nil {
		return client.Secret(ref.URI()), nil
	}
	kind, name := ref.Split()
	if kind == "env" {
		return client.SetSecret(unique(name), os.Getenv(name)), nil
	}
	file, err := fileOf(ref)
	if err != nil {
		return nil, err
	}
	value, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the secret %s: %w", ref, err)
	}
	return client.SetSecret(unique(filepath.Base(file)), string(value)), nil
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
