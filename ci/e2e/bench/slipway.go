package main

import (
	"context"
	"io"
	"os/exec"

	"github.com/slipway-sh/slipway/ci/e2e/slipway"
)

// program is Slipway as its Dagger module or as its command line tool.
type program struct {
	command func(ctx context.Context, command, name string) *exec.Cmd
	log     io.Writer
}

// Install never repeats a check that Slipway remembers.
func (p *program) Install(ctx context.Context, name string, _ bool) error {
	return slipway.Run(p.command(ctx, "install", name), p.log)
}

// Remove is `destroy`.
func (p *program) Remove(ctx context.Context, name string) error {
	return slipway.Run(p.command(ctx, "destroy", name), p.log)
}
