package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
)

// localImage is the repository of the image where it is in no registry: its tag is the
// beginning of its digest.
const localImage = "slipway.local/engine"

// image builds the image of the engine and prints its reference, which is for envImage: by
// digest of where it was pushed, else what Docker has loaded.
func (c *control) image(ctx context.Context, push string) error {
	op := "make the engine's image"
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return &fault.Fault{Class: fault.Preflight, Code: codeRoot, Op: op, Err: errors.New("root puts it together, on Debian"),
			Fix: "sudo -E make engine-image there, or use Dagger's own: unset " + envImage}
	}
	if push == "" && !dockerResponds(ctx) {
		return &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: op, Err: errors.New("no Docker daemon answers that could load it"),
			Fix: "start Docker, or push it: make engine-image REGISTRY=HOST/PATH"}
	}
	host, err := readGo(ctx)
	if err != nil {
		return err
	}
	if strings.Contains(host["GOPROXY"], "@") {
		return &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: op, Err: errors.New("GOPROXY has a password, which anyone who can pull the image could read"),
			Fix: "give one without for this command: GOPROXY=https://PROXY make engine-image"}
	}
	parts, err := c.buildEngine(ctx, build.NewReporter(os.Stderr, tasks+1))
	if err != nil {
		return err
	}
	dial, _, err := c.command("dialstdio").Build(ctx, c.store)
	if err != nil {
		return buildFault(err)
	}
	dir, err := os.MkdirTemp(c.store.Path(), "engine-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	image, err := pack(ctx, filepath.Join(dir, "layer.tar"), parts, dial, host["GOPROXY"])
	if err != nil {
		return buildFault(err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	ref := localImage + ":" + digest.Hex[:12]
	if push == "" {
		err = load(ctx, ref, image)
	} else {
		ref, err = pushImage(ctx, push, image)
	}
	if err != nil {
		return &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: op, Err: err, Fix: "see what " + cmp.Or(push, "docker") + " says, then run make engine-image again"}
	}
	c.logf("engine: for Docker, run: %s=%s make engine", envImage, ref)
	fmt.Fprintln(c.stdout, ref)
	return nil
}

// pack writes the engine's root and the image of its SDK into a layer, and makes an image of it.
func pack(ctx context.Context, layer string, parts engineParts, dial, proxy string) (v1.Image, error) {
	trees := []oci.Tree{{Root: parts.root}, {Root: parts.sdk, Into: contentDir[1:], Owner: &oci.Owner{}}}
	files := []oci.File{
		// The dagger CLI connects by "docker exec CONTAINER buildctl dial-stdio".
		{Path: "usr/local/bin/buildctl", Mode: 0o755, Source: dial},
		{Path: configFile[1:], Mode: 0o644, Data: []byte(daggercli.EngineConfig + "\n")},
		{Path: "tmp", Mode: 0o1777, Dir: true},
	}
	if _, err := oci.WritePlain(ctx, layer, trees, files); err != nil {
		return nil, err
	}
	packed, err := tarball.LayerFromFile(layer) // compressed in a way that every Docker reads
	if err != nil {
		return nil, err
	}
	return oci.NewImage(oci.Config{
		Arch:       runtime.GOARCH,
		Entrypoint: []string{engineBin, "--allow-insecure-entitlement", "security.insecure"},
		Env: map[string]string{
			"PATH":                          enginePath,
			"HOME":                          "/root",
			"LC_ALL":                        "C.UTF-8",
			"DO_NOT_TRACK":                  "1",
			"DAGGER_GO_SDK_MANIFEST_DIGEST": parts.image,
			"GOPROXY":                       proxy, // the CLI passes none on
		},
	}, packed)
}

func load(ctx context.Context, ref string, image v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(tarball.Write(tag, image, w)) }()
	cmd := exec.CommandContext(ctx, "docker", "load", "--quiet")
	cmd.Stdin = r
	out, err := cmd.CombinedOutput()
	_ = r.Close()
	if err != nil {
		return fmt.Errorf("docker load: %w; it said:\n%s", err, build.LastLines(string(out), 15))
	}
	return nil
}

// pushImage puts an image into a registry, with the account of docker login, and is its
// reference by digest.
func pushImage(ctx context.Context, to string, image v1.Image) (string, error) {
	repository, err := name.NewRepository(to)
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	ref := repository.Digest(digest.String())
	return ref.String(), remote.Write(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(http.DefaultTransport))
}
