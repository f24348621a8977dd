package e2e

import (
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
)

// emulator runs programs for arm64: `make bundle/arm64` installs it.
const emulator = "qemu-aarch64-static"

// version is a program, how it is asked for its version, and what it says.
type version struct{ program, args, says string }

// TestBundleForArm64 builds the bundle for engines on arm64, as those on Macs, on this machine,
// starts each program that it has under QEMU, and has it refused by the engine of this machine.
// make test-all has built it before the tests begin: by itself it takes half an hour.
func TestBundleForArm64(t *testing.T) {
	takesLong(t)
	if runtime.GOARCH == "arm64" {
		t.Skip("this machine's own bundle is the one for arm64")
	}
	inTurn(t)
	d := open(t, "e2e-arm64")
	wanted := indexDigest(t, d.Bundle)
	env, err := os.ReadFile(filepath.Join(d.Root, ".env"))
	require.NoError(t, err)

	arm := d
	build := exec.CommandContext(t.Context(), "make", "-s", "bundle", "ARCH=arm64", "PLATFORM=examples/platform/1.0.0 examples/platform/manifests/1.0.0")
	build.Dir = d.Root
	built := finish(t, build)
	require.Zero(t, built.code, slipway.Tail(built.err))
	for line := range strings.Lines(built.out) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "BUNDLE":
			arm.Bundle = value
		case "bundleDigest":
			arm.Digest = value
		}
	}
	require.Equal(t, indexDigest(t, arm.Bundle), arm.Digest, built.out)
	require.NotEqual(t, wanted, arm.Digest)
	after, err := os.ReadFile(filepath.Join(d.Root, ".env"))
	require.NoError(t, err)
	require.Equal(t, string(env), string(after), "runs of this checkout go on with the bundle for this machine")
	b, err := bundle.Read(arm.Bundle)
	require.NoError(t, err)
	require.Equal(t, "linux/arm64", b.Platform)

	own := filepath.Join(d.Bundle, "bin/slipway")
	t.Run("lock verify", func(t *testing.T) {
		r := finish(t, exec.CommandContext(t.Context(), own, "lock", "verify", "--bundle", arm.Bundle, "--bundle-digest", arm.Digest))
		if strings.Contains(r.err, "LCK-004") { // Debian's mirror has gone on since the packages were pinned
			require.NotRegexp(t, `BUN-\d|LCK-00[^4]`, r.err, "all else is that of the lock")
			t.Skip("the packages of arm64 were not compared: make pins ARCH=arm64")
		}
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "files for linux/arm64")
		require.Regexp(t, `Debian packages: \d{3}, as pinned`, r.out)
		require.Regexp(t, `(?m)^lock sha256:[0-9a-f]{64}$`, r.out)
	})

	t.Run("tools", func(t *testing.T) {
		for _, v := range []version{
			{"bin/slipway", "version", "slipway dev-"},
			{"bin/kubectl", "version --client", "Client Version: v1.37.2"},
			{"bin/helm", "version --short", "v3.22.0"},
			{"bin/terraform", "version", "Terraform v1.15.9\non linux_arm64"},
		} {
			emulated(t, arm.Bundle, v)
		}
		forArm64(t, filepath.Join(arm.Bundle, "bin"), 4)
	})

	for name, programs := range map[string][]version{
		"toolchain": {{"usr/bin/git", "--version", "git version 2."}, {"usr/bin/curl", "--version", "curl 7."}},
		"node": {
			{"usr/local/bin/slipway-node", "kubelet --version", "Kubernetes v1.37.2"},
			{"usr/local/bin/slipway-node", "kube-apiserver --version", "Kubernetes v1.37.2"},
			{"usr/local/bin/etcd", "--version", "Go OS/Arch: linux/arm64"},
			{"usr/local/bin/containerd", "--version", "containerd github.com/containerd/containerd/v2 2."},
			{"usr/local/bin/runc", "--version", "runc version 1.5"},
			// QEMU has no netlink, without which those of nftables and conntrack say nothing.
			{"usr/sbin/xtables-legacy-multi", "iptables --version", "iptables v1."},
			{"usr/bin/ip", "-V", "iproute2-6."},
			{"usr/bin/kmod", "--version", "kmod version "},
		},
		"argocd": {
			{"usr/local/bin/argocd", "version --client", "argocd: v3.6.1"}, {"usr/local/bin/helm", "version --short", "v3.22.0"},
			{"usr/bin/tini", "--version", "tini version "}, {"usr/bin/gpg", "--version", "gpg (GnuPG) 2."},
		},
		"busybox":                {{"bin/busybox", "--help", "BusyBox v1.35"}},
		"console":                nil, // it serves, and has no version to tell
		"coredns":                {{"coredns", "-version", "CoreDNS-1.15.0"}},
		"dex":                    {{"usr/local/bin/dex", "version", "v2.41.1"}},
		"gitea":                  {{"usr/local/bin/gitea", "--version", "1.27.3"}},
		"guestbook":              nil,
		"local-path-provisioner": {{"usr/bin/local-path-provisioner", "--version", "v0.0.30"}},
		"pause":                  nil,
		"postgresql":             {{"usr/lib/postgresql/15/bin/postgres", "--version", "postgres (PostgreSQL) 15."}, {"usr/lib/postgresql/15/bin/psql", "--version", "psql (PostgreSQL) 15."}},
		"redis":                  {{"usr/bin/redis-server", "--version", "Redis server v=7.0"}},
	} {
		t.Run("image "+name, func(t *testing.T) {
			dir := filesOf(t, b, name)
			for _, v := range programs {
				emulated(t, dir, v)
			}
			forArm64(t, dir, 1)
		})
	}

	t.Run("one lock has both", func(t *testing.T) {
		r, file := startRegistry(t), filepath.Join(t.TempDir(), "slipway.lock.json")
		for _, push := range [][]string{{d.Bundle, "--bundle-digest", wanted}, {arm.Bundle, "--bundle-digest", arm.Digest}} {
			cmd := exec.CommandContext(t.Context(), own, append(append([]string{"bundle", "push", "--out", file}, push...), r.loopback+"/team/slipway")...)
			done := finish(t, cmd)
			require.Zero(t, done.code, slipway.Tail(done.err))
		}
		pushed, _, err := lock.Read(file)
		require.NoError(t, err)
		require.Equal(t, []string{"linux/amd64", "linux/arm64"}, pushed.Platforms())
		require.NotEqual(t, pushed.Bundles["linux/amd64"].Toolchain, pushed.Bundles["linux/arm64"].Toolchain)
		validate := finish(t, exec.CommandContext(t.Context(), own, "validate", "--lock", file, "--config", write(t, configured+"local: {registryMirror: \"http://"+r.bridge+"/team/slipway\"}\n")))
		require.Zero(t, validate.code, slipway.Tail(validate.err))
	})

	t.Run("refused by an engine for amd64", func(t *testing.T) {
		const says = "it is for linux/arm64, the engine runs on linux/amd64"
		host := d // its program, which is for this machine
		r := finish(t, host.CLI(t.Context(), "install", "--bundle", arm.Bundle, "--bundle-digest", arm.Digest))
		require.Equal(t, 3, r.code, slipway.Tail(r.out+r.err))
		require.Contains(t, r.err, "BUN-004")
		require.Contains(t, r.err, says)
		require.NotContains(t, r.err, "infrastructure/", "no step started")

		r = arm.call(t, "install")
		require.Equal(t, 3, r.code, slipway.Tail(r.out+r.err))
		require.Contains(t, r.err, "BUN-004")
		require.Contains(t, r.err, says)
		require.Contains(t, r.err, "make bundle ARCH=amd64")
	})
}

// emulated starts a program for arm64 and fails unless it says its version. Its libraries are
// those below dir.
func emulated(t *testing.T, dir string, v version) {
	t.Helper()
	args := append([]string{"-L", dir, filepath.Join(dir, v.program)}, strings.Fields(v.args)...)
	cmd := exec.CommandContext(t.Context(), emulator, args...)
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "HOME="+t.TempDir(), "GITEA_WORK_DIR="+t.TempDir())
	r := finish(t, cmd)
	require.Zero(t, r.code, "%s %s: %s", v.program, v.args, slipway.Tail(r.err))
	require.Contains(t, r.out+r.err, v.says, v.program)
	t.Logf("%s %s, after %s: %s", v.program, v.args, r.took, regexp.MustCompile(`\n[\s\S]*`).ReplaceAllString(r.out+r.err, ""))
}

// filesOf is a folder with the files of an image of the bundle.
func filesOf(t *testing.T, b *bundle.Bundle, name string) string {
	t.Helper()
	path := bundle.WorkloadArchive
	switch name {
	case "toolchain":
		path = bundle.ToolchainArchive
	case "node":
		path = bundle.NodeArchive
	}
	archive, err := ociarchive.Open(b.Path(path))
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	var image v1.Image
	for _, i := range b.Index.Images {
		if i.Name == name {
			image, err = archive.Image(i.Ref, i.Digest)
			require.NoError(t, err)
		}
	}
	require.NotNil(t, image, "the bundle has no image %s", name)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "linux/arm64", config.OS+"/"+config.Architecture)

	dir := t.TempDir()
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	unpack := exec.CommandContext(t.Context(), "tar", "--extract", "--no-same-owner", "--no-same-permissions", "--directory", dir)
	unpack.Stdin = files
	out, err := unpack.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// forArm64 fails unless the programs and libraries below dir are for arm64, and there are at
// least so many.
func forArm64(t *testing.T, dir string, least int) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		magic := make([]byte, len(elf.ELFMAG))
		if n, err := io.ReadFull(f, magic); err != nil || string(magic[:n]) != elf.ELFMAG {
			return nil //nolint:nilerr // shorter than a program's first bytes
		}
		program, err := elf.NewFile(f)
		if err != nil {
			return err
		}
		found++
		require.Equal(t, elf.EM_AARCH64, program.Machine, strings.TrimPrefix(path, dir))
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, found, least)
}
