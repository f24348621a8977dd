package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
)

// sdkImage makes the image in which the engine generates, compiles and runs
// modules written in Go: the Debian root, the Go tree of this machine and
// Dagger's codegen.
type sdkImage struct {
	base    build.Key // of the Debian root
	tar     string
	codegen string // binary
}

// goScript stands before go on the image's PATH. codegen asks for Dagger's SDK by a commit, which
// not every module proxy has, and raises what that needs (get -u), to versions that do not compile
// with it: it gets the release, and nothing else is raised.
const goScript = `#!/bin/sh
case "$1 $*" in "get "*" dagger.io/dagger@"*) set -- get dagger.io/dagger@` + daggerVersion + ` ;; esac
exec /usr/local/go/bin/go "$@"
`

// manifestFile holds the digest of the manifest, beside the layout's files.
const manifestFile = "manifest-digest"

// goSettings are the settings of go that a machine may need to fetch modules
// at all. GOPROXY itself is the engine's to pass on.
func goSettings() []string {
	return []string{"GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE"}
}

func (s sdkImage) build(ctx context.Context, st *build.Store) (dir, manifest string, hit bool, err error) {
	host, err := readGo(ctx)
	if err != nil {
		return "", "", false, err
	}
	config := imageConfig(host)
	key := build.NewInputs("engine-go-sdk").
		String("recipe", "3").
		String("script", goScript).
		String("debian", s.base.Digest).
		String("codegen", digestOf(s.codegen)).
		String("go", host["GOVERSION"]).
		String("config", fmt.Sprint(config)).
		Key()
	dir, hit, err = st.Do(ctx, key, func(ctx context.Context, dir string) error {
		if err := s.make(ctx, dir, host["GOROOT"], config); err != nil {
			return fmt.Errorf("pack the Go SDK image: %w", err)
		}
		return nil
	})
	if err != nil {
		return "", "", false, err
	}
	digest, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return "", "", false, fmt.Errorf("read the Go SDK image: %w", err)
	}
	return dir, strings.TrimSpace(string(digest)), hit, nil
}

// make writes the image as an OCI layout into dir, and the digest of its manifest
// beside it.
func (s sdkImage) make(ctx context.Context, dir, goroot string, config oci.Config) error {
	goroot, err := filepath.EvalSymlinks(goroot)
	if err != nil {
		return err
	}
	tree := oci.Tree{Root: goroot, Into: "usr/local/go", Uniform: true, Skip: skipGoFile}
	files := []oci.File{
		{Path: "usr/local/bin/codegen", Mode: 0o755, Source: s.codegen},
		{Path: "go/bin/go", Mode: 0o755, Data: []byte(goScript)},
		// The engine adds the machine's certificates to a container before each
		// command. Without this program it appends them to the bundle, which
		// takes no time; with it, it runs the program twice.
		{Path: "usr/sbin/.wh.update-ca-certificates", Mode: 0o644, Data: []byte{}},
		{Path: "root", Mode: 0o700, Dir: true},
	}
	for _, name := range []string{"go", "go/bin", "go/pkg", "go/pkg/mod", "go/src", "root/.cache", "root/.cache/go-build", "usr", "usr/local", "usr/local/bin", "usr/sbin"} {
		files = append(files, oci.File{Path: name, Mode: 0o755, Dir: true})
	}
	base, err := oci.OpenPlain(s.tar)
	if err != nil {
		return err
	}
	packed := filepath.Join(dir, "go.tar")
	own, err := oci.WritePlain(ctx, packed, []oci.Tree{tree}, files)
	if err != nil {
		return err
	}
	image, err := oci.NewImage(config, base, own)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendImage(image); err != nil {
		return err
	}
	return errors.Join(os.Remove(packed), os.WriteFile(filepath.Join(dir, manifestFile), []byte(digest.String()+"\n"), 0o644))
}

// skipGoFile leaves out of a Go tree what only Go's own tests and documentation
// need.
func skipGoFile(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return slices.Contains([]string{"api", "doc", "misc", "test", ".git", ".github"}, top) ||
		strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "/testdata") || strings.Contains(path, "/testdata/")
}

func imageConfig(host map[string]string) oci.Config {
	env := map[string]string{
		"PATH":        "/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOPATH":      "/go",
		"GOTOOLCHAIN": "local",
		"CGO_ENABLED": "0",
		"HOME":        "/root",
		"LC_ALL":      "C.UTF-8",
	}
	for _, name := range goSettings() {
		if v := host[name]; v != "" && (name != "GOSUMDB" || v != "sum.golang.org") {
			env[name] = v
		}
	}
	return oci.Config{Arch: runtime.GOARCH, Env: env, WorkingDir: "/", Entrypoint: []string{"codegen"}}
}

func readGo(ctx context.Context) (map[string]string, error) {
	var env map[string]string
	args := append([]string{"env", "-json", "GOROOT", "GOVERSION", "GOPROXY"}, goSettings()...)
	if err := gotool.Query(ctx, "", nil, &env, args...); err != nil {
		return nil, fmt.Errorf("ask go for its settings: %w", err)
	}
	return env, nil
}
