package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
	"github.com/slipway-sh/slipway/ci/origin"
)

// prepare installs what make bundle needs besides Go, which installs what else it needs.
const prepare = `apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends ca-certificates gcc git libc6-dev make mmdebstrap
`

// build leaves nothing in the volume once the bundle is there: no engine collects that. A build
// that failed goes on with it, and its log comes last, at a length that leaves its error in what
// the engine keeps of standard error, 100 KiB (engine/buildkit/ref.go of Dagger v0.20.8).
const build = `export SLIPWAY_CACHE=/building/store GOCACHE=/building/go-build GOMODCACHE=/building/modules
rm -rf $SLIPWAY_CACHE/logs && mkdir -p $SLIPWAY_CACHE/logs
make bundle PLATFORM="$*" || { find $SLIPWAY_CACHE/logs -name 'bundle-*.log' -exec cat {} + | tail -c 60000 >&2; exit 1; }
cp --archive "$(make -s bundle-path)" /bundle
chmod -R u+w /building
rm -rf /building/*
`

// Bundle builds the bundle, in a container: no root and no Debian is needed.
//
// `dagger call bundle --base IMAGE export --path bundle` writes it. It is what make bundle
// builds, for the engine's architecture, takes half an hour or more, and 25 GiB on the engine
// while it lasts.
//
// +cache="never"
func (m *Slipway) Bundle(
	ctx context.Context,
	// The image to build in, by digest: Debian 12 with Go.
	//
	// Such as docker.io/library/golang:1.26-bookworm@sha256:….
	base string,
	// A checkout of Slipway, if not the one of this module.
	// +defaultPath="/"
	// +ignore=[".git", "bin", "dist", "bundle", ".env"]
	source *dagger.Directory,
	// Platform releases whose images on demand shall be in it.
	// +optional
	platform []*dagger.Directory,
) (*dagger.Directory, error) {
	if !strings.Contains(base, "@sha256:") {
		return nil, refuse(origin.NoDigest(base))
	}
	image, err := dag.Container().From(base).Sync(ctx)
	if err != nil {
		return nil, refuse(origin.NoBase(base, err))
	}
	prepared, err := image.WithExec([]string{"sh", "-ceu", prepare}).Sync(ctx)
	if failed, ok := errors.AsType[*dagger.ExecError](err); ok {
		return nil, refuse(origin.NotPrepared(base, failed.Stderr))
	} else if err != nil {
		return nil, refuse(err)
	}
	built := prepared.
		WithMountedCache("/building", dag.CacheVolume("slipway-bundle"), dagger.ContainerWithMountedCacheOpts{Sharing: dagger.CacheSharingModeLocked}).
		WithMountedDirectory("/slipway", source).
		WithWorkdir("/slipway")
	// How this machine's Go finds modules, which the engine passes on.
	for _, name := range []string{"GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE"} {
		if value := os.Getenv(name); value != "" {
			built = built.WithEnvVariable(name, value)
		}
	}
	if value := os.Getenv("GOPROXY"); value != "" { // it may have a password
		built = built.WithSecretVariable("GOPROXY", dag.SetSecret("GOPROXY", value))
	}
	script := []string{"sh", "-ceu", build, "sh"}
	for i, dir := range platform {
		at := fmt.Sprintf("/platforms/%d", i)
		built, script = built.WithMountedDirectory(at, dir), append(script, at)
	}
	dir, err := built.WithExec(script, dagger.ContainerWithExecOpts{InsecureRootCapabilities: true}).Directory("/bundle").Sync(ctx)
	if failed, ok := errors.AsType[*dagger.ExecError](err); ok {
		return nil, refuse(origin.NotBuilt(failed.Stderr))
	} else if err != nil {
		return nil, refuse(err)
	}
	return dir, nil
}
