package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/progress"
	"github.com/slipway-sh/slipway/ci/dev/build/sources"
	"github.com/slipway-sh/slipway/containers/bundle"
)

// program is slipway, built for a system.
type program struct {
	system string // GOOS/GOARCH
	path   string
	digest string // "sha256:<hex>"
	build  *debug.BuildInfo
}

// file is the program's name in archives.
func (p program) file() string {
	if strings.HasPrefix(p.system, "windows/") {
		return "slipway.exe"
	}
	return "slipway"
}

const host = runtime.GOOS + "/" + runtime.GOARCH

// programs are those of a release.
type programs struct {
	targets []program // in the order of the targets
	host    program   // that of this machine, whether or not it is a target
	sources string    // digest of what they are compiled from
}

// compile builds the programs into the folder dir.
func (o *options) compile(ctx context.Context, s *source, dir string) (*programs, error) {
	_, digest, err := sources.OfSlipway(ctx, s.root)
	if err != nil {
		return nil, err
	}
	all := &programs{sources: digest}
	systems := o.targets
	if !slices.Contains(systems, host) {
		systems = append([]string{host}, systems...)
	}
	report := progress.ForStderr(len(systems))
	for _, system := range systems {
		task := report.Start(system, "compiling")
		p, err := o.one(ctx, s, digest, system, dir)
		if err != nil {
			task.Fail()
			return nil, err
		}
		task.Done("compiled")
		if system == host {
			all.host = p
		}
		if slices.Contains(o.targets, system) {
			all.targets = append(all.targets, p)
		}
	}
	version, err := all.host.says(ctx, "version", "--output", "json")
	if err != nil {
		return nil, err
	}
	var said struct{ Version, Sources string }
	if err := json.Unmarshal(version, &said); err != nil {
		return nil, fmt.Errorf("read the version of the program: %w", err)
	}
	if said.Version != o.version || said.Sources != digest {
		return nil, fmt.Errorf("the program says that it is %s of %s, and not %s of %s", said.Version, said.Sources, o.version, digest)
	}
	return all, nil
}

// one builds the program for a system.
func (o *options) one(ctx context.Context, s *source, digest, system, dir string) (program, error) {
	p := program{system: system}
	p.path = filepath.Join(dir, strings.ReplaceAll(system, "/", "_"), p.file())
	err := os.MkdirAll(filepath.Dir(p.path), 0o755)
	if err == nil {
		err = gotool.Command{
			Name: "slipway for " + system, Module: s.root, Package: ".", System: system,
			LDFlags: []string{"-s", "-w", "-X", "main.version=" + o.version, "-X", "main.source=" + digest},
		}.Compile(ctx, p.path)
	}
	if err != nil {
		return p, err
	}
	if p.build, err = buildinfo.ReadFile(p.path); err != nil {
		return p, fmt.Errorf("read what the program for %s was built from: %w", system, err)
	}
	sum, err := bundle.Sum(ctx, p.path)
	p.digest = "sha256:" + sum
	return p, err
}

// says is what the program prints, without the environment of this process: variables are
// defaults of flags.
func (p program) says(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("slipway %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
