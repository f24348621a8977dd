package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slipway-sh/slipway/ci/dev/build/console"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/containers/inventory"
)

// programs prints the paths of the engine's Go programs, which it builds.
func (c *control) programs(ctx context.Context) error {
	parts, err := c.buildEngine(ctx, console.NewReporter(os.Stderr, tasks))
	if err != nil {
		return err
	}
	for _, path := range parts.programs {
		fmt.Fprintln(c.stdout, path)
	}
	return nil
}

// outdated fails if Debian has a security update for a package of the engine, which it builds.
func (c *control) outdated(ctx context.Context) error {
	parts, err := c.buildEngine(ctx, console.NewReporter(os.Stderr, tasks))
	if err != nil {
		return err
	}
	status, err := exec.CommandContext(ctx, "tar", "--extract", "--to-stdout", "--file", parts.debian, "./var/lib/dpkg/status").Output()
	if err != nil {
		return fmt.Errorf("read the packages of the engine's root: %w", err)
	}
	versions, err := inventory.Installed(bytes.NewReader(status))
	if err != nil {
		return err
	}
	release, err := debian.HostRelease("/")
	if err != nil {
		return err
	}
	lists, err := debian.FetchLists(ctx, release)
	if err != nil {
		return err
	}
	defer lists.Close()
	return lists.RequireUpdated(ctx, versions, "run: make engine-stop; remove engine-debian, engine-root and engine-go-sdk below "+
		filepath.Join(c.store.Path(), "objects")+", which are built again; then run: make engine")
}
