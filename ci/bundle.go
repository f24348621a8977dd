package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
	"github.com/slipway-sh/slipway/ci/origin"
)

// The Go toolchain that builds a bundle, as a module, and the sha256 of its archive; a newer one
// that go.mod asks for it fetches itself. lock.yaml has Debian's packages for no other platform.
const (
	goToolchain = "/golang.org/toolchain/@v/v0.0.1-go1.26.8.linux-amd64.zip"
	goSum       = "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7"
	builds      = "linux/amd64"
)

// What a container needs to run make bundle, and how Go is unpacked in it.
const prepare = `apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends ca-certificates gcc git libc6-dev make mmdebstrap unzip
echo "$1  /go.zip" | sha256sum --check --quiet
unzip -q /go.zip -d /unpacked
mv /unpacked/golang.org/toolchain@* /usr/local/go
chmod -R +x /usr/local/go/bin /usr/local/go/pkg/tool
`

// build leaves nothing in the volume once the bundle is there: no engine collects that. A build
// that failed goes on with it.
const build = `export PATH="/usr/local/go/bin:$PATH" SLIPWAY_CACHE=/work/store GOCACHE=/work/go-build GOMODCACHE=/work/modules
make bundle PLATFORM="$*"
cp --archive "$(make -s bundle-path)" /bundle
chmod -R u+w /work
rm -rf /work/*
`

// Bundle builds the bundle, in a container: no root and no Debian is needed.
//
// `dagger call bundle export --path bundle` writes it. It is what make bundle builds, takes
// half an hour or more, and 25 GiB on the engine while it lasts.
//
// +cache="never"
func (m *Slipway) Bundle(
	ctx context.Context,
	// A checkout of Slipway, if not the one of this module.
	// +defaultPath="/"
	// +ignore=[".git", "bin", "dist", "bundle", ".env"]
	source *dagger.Directory,
	// Platform releases whose images on demand shall be in it.
	// +optional
	platform []*dagger.Directory,
	// The image to build in, by digest: Debian 12.
	//
	// Such as docker.io/library/debian:12-slim@sha256:…, from where the engine can pull it.
	base string,
) (*dagger.Directory, error) {
	engine, err := dag.DefaultPlatform(ctx)
	if err != nil {
		return nil, err
	}
	if engine != builds {
		return nil, refuse(origin.NotBuilt(string(engine), builds))
	}
	if !strings.Contains(base, "@sha256:") {
		return nil, refuse(origin.NoDigest(base))
	}
	proxy := "https://proxy.golang.org"
	for _, p := range strings.FieldsFunc(os.Getenv("GOPROXY"), func(c rune) bool { return c == ',' || c == '|' }) {
		if strings.HasPrefix(p, "http") && !strings.Contains(p, "@") { // a password is not for a URL that is shown
			proxy = strings.TrimSuffix(p, "/")
			break
		}
	}
	image, err := dag.Container().From(base).Sync(ctx)
	if err != nil {
		return nil, refuse(origin.NoBase(base, err))
	}
	archive := dag.HTTP(proxy + goToolchain)
	built := image.
		WithMountedFile("/go.zip", archive).
		WithExec([]string{"sh", "-ceu", prepare, "sh", goSum}).
		WithMountedCache("/work", dag.CacheVolume("slipway-bundle"), dagger.ContainerWithMountedCacheOpts{Sharing: dagger.CacheSharingModeLocked}).
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
	return built.WithExec(script, dagger.ContainerWithExecOpts{InsecureRootCapabilities: true}).Directory("/bundle").Sync(ctx)
}
