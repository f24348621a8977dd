package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// program is Slipway as its Dagger module or as its command line tool.
type program struct {
	command func(ctx context.Context, command, name string, args ...string) *exec.Cmd
	log     io.Writer
	install []string // arguments of every install
	broken  []string // more arguments of an install that must fail
	remove  []string // arguments of destroy, with which an absent deployment is no error
	// other are the commands of the kinds that do not install, with their arguments.
	other map[kind][]string
}

// stepFailed is the exit code of an install of which a step failed.
const stepFailed = 4

// brokenAtTheEnd makes a configuration in dir with which an install fails before its last
// stage.
func brokenAtTheEnd(dir string) (file string, err error) {
	file = filepath.Join(dir, "broken.yaml")
	const text = "apiVersion: slipway.sh/v1\nhooks: [{name: gate, before: postorchestrator/access, script: exit 3}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("make a configuration: %w", err)
	}
	return file, nil
}

// Install never repeats a check that Slipway remembers.
func (p *program) Install(ctx context.Context, name string, k kind) error {
	if other := p.other[k]; other != nil {
		return slipway.Run(p.command(ctx, other[0], name, other[1:]...), p.log)
	}
	if k != failed {
		return slipway.Run(p.command(ctx, "install", name, p.install...), p.log)
	}
	err := slipway.Run(p.command(ctx, "install", name, slices.Concat(p.install, p.broken)...), p.log)
	if err == nil {
		return errors.New("it was to fail, and did not")
	}
	if exit, ok := errors.AsType[*slipway.ExitError](err); ok && exit.Status == stepFailed {
		return nil
	}
	return err
}

// Remove is `destroy`.
func (p *program) Remove(ctx context.Context, name string) error {
	return slipway.Run(p.command(ctx, "destroy", name, p.remove...), p.log)
}
