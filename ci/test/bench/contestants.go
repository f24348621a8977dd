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
	"strings"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// installer is one of those that are compared.
type installer interface {
	// Install brings the platform up under a name, or makes sure that it is, in the
	// way that is measured.
	Install(ctx context.Context, name string, k kind) error
	// Remove takes everything of that name away; nothing there is no error.
	Remove(ctx context.Context, name string) error
}

// contestant is an installer with its place in the table.
type contestant struct {
	installer
	title string
	name  string // of the deployments that it makes
	kinds []kind // what is measured, in this order
}

// choose returns the contestants that the flags select.
func (s settings) choose(all []contestant) []contestant {
	return slices.DeleteFunc(all, func(c contestant) bool {
		return len(s.only) > 0 && !slices.Contains(s.only, strings.TrimPrefix(c.name, "bench-"))
	})
}

// names are the names of all contestants, as --only takes them.
func names() (out []string) {
	for _, c := range (settings{}).contestants("", &pins{}, "", nil) {
		out = append(out, strings.TrimPrefix(c.name, "bench-"))
	}
	return out
}

// contestants are all of them, in the order of the table. gate is a configuration with which
// an install fails before its last stage.
func (s settings) contestants(root string, pins *pins, gate string, log io.Writer) []contestant {
	on := func(name string) slipway.Deployment {
		return slipway.Deployment{Name: name, Bundle: s.bundle, Root: root}
	}
	module := func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
		return on(name).Module(ctx, command, args...)
	}
	cli := func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
		return on(name).CLI(ctx, command, args...)
	}
	sh := script{root: root, bundle: s.bundle, pins: pins, log: log, release: reference()}
	upgradeSh := sh
	upgradeSh.release, upgradeSh.next = minor(), major()
	staticSh := sh
	staticSh.release = static()
	helmfile := staticSh
	helmfile.helmfile = true

	ignore := []string{"--yes", "--ignore-not-found"} // the module's destroy does so by itself
	other := []string{"--platform", filepath.Join(root, static().dir)}
	broken, kept := []string{"--config", gate}, []string{"--config", gate, "--keep-cluster"}
	return []contestant{
		{title: titleModule, name: "bench-module", kinds: []kind{cold, second}, installer: &program{command: module, log: log}},
		{title: titleCLI, name: "bench-cli", kinds: []kind{cold, second}, installer: &program{command: cli, log: log, remove: ignore}},
		{title: titleResumed, name: "bench-resumed", kinds: []kind{failed, resumed}, installer: &program{command: cli, log: log, broken: broken, remove: ignore}},
		{title: titleKept, name: "bench-kept", kinds: []kind{failed, resumed, second}, installer: &program{command: cli, log: log, broken: kept, remove: ignore}},
		{title: titleScript, name: "bench-script", kinds: []kind{cold, second, repeated}, installer: &sh},
		{title: titleStatic, name: "bench-static", kinds: []kind{cold, second}, installer: &program{command: cli, log: log, install: other, remove: ignore}},
		{title: titleStaticScript, name: "bench-static-script", kinds: []kind{cold, second}, installer: &staticSh},
		{title: titleHelmfile, name: "bench-helmfile", kinds: []kind{cold, second}, installer: &helmfile},
		{title: titlePlan, name: "bench-plan", kinds: []kind{cold, planned}, installer: &program{
			command: cli, log: log, install: []string{"--keep-cluster"}, remove: ignore,
			other: map[kind][]string{planned: {"plan", "--detailed-exitcode"}}, // a plan with changes is an error
		}},
		{title: titleUpgrade, name: "bench-upgrade", kinds: []kind{cold, upgraded}, installer: &program{
			command: cli, log: log, install: []string{"--platform", filepath.Join(root, minor().dir)}, remove: ignore,
			other: map[kind][]string{upgraded: {"upgrade", "--to", "2.0.0"}},
		}},
		{title: titleUpgradeScript, name: "bench-upgrade-script", kinds: []kind{cold, upgraded}, installer: &upgradeSh},
	}
}

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
