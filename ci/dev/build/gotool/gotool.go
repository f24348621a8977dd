// Package gotool builds Go commands out of tools modules: small modules whose
// go.mod pins a command and everything below it. A build depends on nothing but
// the module proxy and the Go toolchain, and its result is kept in the store.
package gotool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// Command is a Go command to build.
type Command struct {
	Name    string   // of the binary and of the store's entry
	Module  string   // folder of the tools module
	Package string   // import path, or "." for the module's own command
	CGO     bool     // link with C; needs a C compiler
	CC      string   // the C compiler; empty: go's default
	Tags    []string // build tags
	LDFlags []string // each one argument of the linker, without spaces: "-X", "path.Var=value"
	System  string   // GOOS/GOARCH to build for; empty is what go builds for by itself
	Env     []string // NAME=VALUE, for the compilers: places on this machine, which are not in the key
	Linked  string   // digest of what Env leads to

	// Instead is built in place of a module as it is published; nil builds all as they are.
	Instead *Instead

	// Sources tells which files below Module the build depends on, by their
	// slash paths. Nil takes go.mod, go.sum and every Go file that is no test,
	// and whatever is not Go, for it may be embedded; folders that begin with a
	// dot are never looked at.
	Sources func(path string) bool
}

// Checkout is the repository's root: the working folder or the nearest one above it that
// holds the lock.
func Checkout() (string, error) {
	const file = "containers/lock/lock.yaml"
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, file)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the checkout: no %s in %s or above it", file, dir)
		}
	}
}

// Build gives the path of the built command, and whether the store had it.
func (c Command) Build(ctx context.Context, st *build.Store) (path string, hit bool, err error) {
	key, err := c.Key(ctx)
	if err != nil {
		return "", false, err
	}
	dir, hit, err := st.Do(ctx, key, func(ctx context.Context, dir string) error {
		return c.Compile(ctx, filepath.Join(dir, c.Name))
	})
	if err != nil {
		return "", false, err
	}
	return filepath.Join(dir, c.Name), hit, nil
}

// Key is the digest of all that the binary depends on: the module's files and
// those of the local modules that replace others, the flags, and the versions
// of the Go toolchain and, with CGO, of the C compiler.
func (c Command) Key(ctx context.Context) (build.Key, error) {
	env, err := c.toolchain(ctx)
	if err != nil {
		return build.Key{}, err
	}
	in := build.NewInputs(c.Name).
		String("package", c.Package).
		Strings("arguments", c.arguments(c.Name)).
		Strings("environment", c.environment()).
		String("go", env.GOVERSION).
		String("target", env.GOOS+"/"+env.GOARCH+" "+env.GOAMD64+env.GOARM64)
	if c.CGO {
		version, err := exec.CommandContext(ctx, env.CC, "--version").Output()
		if err != nil {
			return build.Key{}, fmt.Errorf("ask the C compiler %s for its version: %w", env.CC, err)
		}
		first, _, _ := strings.Cut(string(version), "\n")
		in.String("cc", first)
	}
	if c.Linked != "" {
		in.String("linked", c.Linked)
	}
	if c.Instead != nil {
		in.Strings("instead", c.Instead.inputs())
	}
	include := c.Sources
	if include == nil {
		include = func(path string) bool { return !strings.HasSuffix(path, "_test.go") }
	}
	if err := in.Tree("module", c.Module, include); err != nil {
		return build.Key{}, err
	}
	replaced, err := c.replaced(ctx)
	if err != nil {
		return build.Key{}, err
	}
	for _, dir := range replaced {
		if err := in.Tree("replace "+dir, filepath.Join(c.Module, dir), include); err != nil {
			return build.Key{}, err
		}
	}
	return in.Key(), nil
}

// Compile builds the command to the file out, without the store.
func (c Command) Compile(ctx context.Context, out string) error {
	cmd := exec.CommandContext(ctx, "go", c.arguments(out)...)
	cmd.Dir = c.Module
	if c.Instead != nil {
		work, err := os.MkdirTemp("", "slipway-build-*")
		if err != nil {
			return fmt.Errorf("build %s: %w", c.Name, err)
		}
		defer func() { _ = os.RemoveAll(work) }()
		if cmd.Dir, err = c.Instead.prepare(ctx, c.Module, work); err != nil {
			return fmt.Errorf("build %s: %w", c.Name, err)
		}
	}
	cmd.Env = slices.Concat(os.Environ(), c.environment(), c.Env)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("build %s: %w", c.Name, cause)
		}
		return fmt.Errorf("build %s: go build %s: %w\n%s", c.Name, c.Package, err, build.LastLines(output.String(), 40))
	}
	return nil
}

// arguments is the command line of go, without "go".
func (c Command) arguments(out string) []string {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly"}
	if len(c.Tags) > 0 {
		args = append(args, "-tags", strings.Join(c.Tags, ","))
	}
	if len(c.LDFlags) > 0 {
		args = append(args, "-ldflags", strings.Join(c.LDFlags, " "))
	}
	return append(args, "-o", out, c.Package)
}

// environment is what is set for go beyond what the caller's environment and Env say.
func (c Command) environment() []string {
	cgo := "CGO_ENABLED=0"
	if c.CGO {
		cgo = "CGO_ENABLED=1"
	}
	env := []string{cgo, "GOFLAGS=", "GOWORK=off"}
	if system, arch, ok := strings.Cut(c.System, "/"); ok {
		env = append(env, "GOOS="+system, "GOARCH="+arch)
	}
	if c.CGO && c.CC != "" {
		env = append(env, "CC="+c.CC)
	}
	return env
}

type toolchain struct{ GOVERSION, GOOS, GOARCH, GOAMD64, GOARM64, CC string }

func (c Command) toolchain(ctx context.Context) (toolchain, error) {
	var env toolchain
	if err := Query(ctx, c.Module, c.environment(), &env, "env", "-json", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CC"); err != nil {
		return env, fmt.Errorf("ask go for its version: %w", err)
	}
	return env, nil
}

// replaced lists the local modules outside Module that its go.mod puts in place
// of others.
func (c Command) replaced(ctx context.Context) ([]string, error) {
	local, err := localModules(ctx, c.Module)
	if err != nil {
		return nil, err
	}
	dirs := slices.DeleteFunc(slices.Sorted(maps.Values(local)), func(dir string) bool { return !strings.HasPrefix(dir, "..") })
	return slices.Compact(dirs), nil
}

// localModules are the folders that a tools module's go.mod puts in place of modules, by module:
// slash paths, from the tools module.
func localModules(ctx context.Context, tools string) (map[string]string, error) {
	var mod struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := Query(ctx, tools, nil, &mod, "mod", "edit", "-json"); err != nil {
		return nil, fmt.Errorf("read go.mod of %s: %w", tools, err)
	}
	local := map[string]string{}
	for _, r := range mod.Replace {
		if r.New.Version == "" {
			local[r.Old.Path] = filepath.ToSlash(filepath.Clean(r.New.Path))
		}
	}
	return local, nil
}

// Query decodes into answer the JSON that go prints, run in the folder dir (this
// process's own if empty) with env beyond this process's environment.
func Query(ctx context.Context, dir string, env []string, answer any, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && len(e.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(e.Stderr))
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(out, answer)
}
