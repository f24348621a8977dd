package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// Places in the engine's root, as Dagger's distribution has them.
const (
	engineBin  = "/usr/local/bin/dagger-engine"
	initBin    = "/usr/local/bin/dagger-init"
	runcBin    = "/usr/local/bin/runc"
	cniDir     = "/opt/cni/bin"
	contentDir = "/usr/local/share/dagger/content"
	certsDir   = "/usr/local/share/ca-certificates"
	configFile = "/etc/dagger/engine.json"
	stateDir   = "/var/lib/dagger"
	runDir     = "/run/dagger"
	enginePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// dnsmasqScript stands before dnsmasq on the engine's PATH. dnsmasq alone would
// take port 53 of every address of the machine; so it takes that of the
// containers' network, when that comes up. Names of services, of whatever
// network, are never asked for outside.
//
//go:embed dnsmasq.sh
var dnsmasqScript string

// engineConfig lets the engine collect what it can make again, but never a cache
// volume: those hold the state of deployments. It does so at the end of a session
// whether another one runs or not, and then snapshots of containers that run were
// seen to vanish (docs/decisions/0006-engine-gc.md); so the limits are for the
// emergency. Space that is reserved for others counts as free (statfs's f_bfree).
//
//go:embed engine.json
var engineConfig string

// rootBuild makes the engine's root file system out of a Debian root and
// Dagger's binaries.
type rootBuild struct {
	base                   build.Key // of the Debian root
	tar                    string
	engine, initd, dnsname string // binaries
	runc                   string
}

func (b rootBuild) key() build.Key {
	return build.NewInputs("engine-root").
		String("recipe", "2").
		String("debian", b.base.Digest).
		String("engine", digestOf(b.engine)).
		String("init", digestOf(b.initd)).
		String("dnsname", digestOf(b.dnsname)).
		String("runc", digestOf(b.runc)).
		String("config", engineConfig).
		String("dnsmasq", dnsmasqScript).
		Key()
}

func (b rootBuild) build(ctx context.Context, st *build.Store) (dir string, hit bool, err error) {
	return st.Do(ctx, b.key(), b.make)
}

func (b rootBuild) make(ctx context.Context, dir string) error {
	if err := unpack(ctx, b.tar, dir); err != nil {
		return fmt.Errorf("unpack the Debian root: %w", err)
	}
	for at, from := range map[string]string{
		engineBin:           b.engine,
		initBin:             b.initd,
		runcBin:             b.runc,
		cniDir + "/dnsname": b.dnsname,
	} {
		if err := build.CopyFile(filepath.Join(dir, at), from, 0o755); err != nil {
			return err
		}
	}
	for at, to := range map[string]string{
		// The engine looks for iptables where Alpine has it.
		"/usr/bin/xtables-legacy-multi": "/usr/sbin/xtables-legacy-multi",
		"/usr/bin/xtables-nft-multi":    "/usr/sbin/xtables-nft-multi",
	} {
		if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
			return err
		}
	}
	plugins, err := os.ReadDir(filepath.Join(dir, "usr/lib/cni"))
	if err != nil {
		return fmt.Errorf("find the network plugins: %w", err)
	}
	for _, p := range plugins {
		if err := os.Symlink("/usr/lib/cni/"+p.Name(), filepath.Join(dir, cniDir, p.Name())); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "usr/local/bin/dnsmasq"), []byte(dnsmasqScript), 0o755); err != nil {
		return err
	}
	// Mount points, and files that are bound over.
	for _, d := range []string{contentDir, certsDir, stateDir, runDir, filepath.Dir(configFile), "/.host", "/lib/modules"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, configFile), []byte(engineConfig), 0o644)
}

// unpack extracts a tar, or those of its files that only names, with owners and modes as they are in it.
func unpack(ctx context.Context, tarFile, dir string, only ...string) error {
	cmd := exec.CommandContext(ctx, "tar", append([]string{"--extract", "--preserve-permissions", "--same-owner",
		"--numeric-owner", "--xattrs", "--xattrs-include=*", "--exclude=./dev/*", "--file", tarFile, "--directory", dir}, only...)...)
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, build.LastLines(output.String(), 10))
	}
	return nil
}
