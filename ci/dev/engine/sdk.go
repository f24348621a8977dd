package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build/store"
)

// sdkImage makes the image in which the engine generates, compiles and runs
// modules written in Go: the Debian root, the Go tree of this machine and
// Dagger's codegen.
type sdkImage struct {
	base    store.Key // of the Debian root
	tar     string
	codegen string // binary
}

// manifestFile holds the digest of the manifest, beside the layout's files.
const manifestFile = "manifest-digest"

// goSettings are the settings of go that a machine may need to fetch modules
// at all. GOPROXY itself is the engine's to pass on.
func goSettings() []string {
	return []string{"GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE"}
}

func (s sdkImage) build(ctx context.Context, st *store.Store) (dir, manifest string, hit bool, err error) {
	host, err := readGo(ctx)
	if err != nil {
		return "", "", false, err
	}
	config := imageConfig(host)
	configText, err := json.Marshal(config)
	if err != nil {
		return "", "", false, fmt.Errorf("describe the Go SDK image: %w", err)
	}
	key := store.NewInputs("engine-go-sdk").
		String("recipe", "1").
		String("debian", s.base.Digest).
		String("codegen", digestOf(s.codegen)).
		String("go", host["GOVERSION"]).
		String("config", string(configText)).
		Key()
	dir, hit, err = st.Do(ctx, key, func(ctx context.Context, dir string) error {
		return s.make(ctx, dir, host["GOROOT"], config)
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

func (s sdkImage) make(ctx context.Context, dir, goroot string, config ociConfig) error {
	layout, err := newLayout(dir)
	if err != nil {
		return err
	}
	if err := layout.addTar(s.tar); err != nil {
		return err
	}
	err = layout.addLayer(func(w *layerWriter) error {
		for _, d := range []string{"go", "go/bin", "go/pkg", "go/pkg/mod", "go/src", "root", "root/.cache", "root/.cache/go-build", "usr", "usr/local", "usr/local/bin", "usr/sbin"} {
			mode := int64(0o755)
			if d == "root" {
				mode = 0o700
			}
			if err := w.dir(d, mode); err != nil {
				return err
			}
		}
		// The engine adds the machine's certificates to a container before each
		// command. Without this program it appends them to the bundle, which
		// takes no time; with it, it runs the program twice.
		if err := w.whiteout("usr/sbin/update-ca-certificates"); err != nil {
			return err
		}
		if err := w.file("usr/local/bin/codegen", s.codegen); err != nil {
			return err
		}
		return w.tree(ctx, "usr/local/go", goroot, includeGoFile)
	})
	if err != nil {
		return fmt.Errorf("pack the Go SDK image: %w", err)
	}
	digest, err := layout.finish(config)
	if err != nil {
		return fmt.Errorf("pack the Go SDK image: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, manifestFile), []byte(digest+"\n"), 0o644)
}

// includeGoFile leaves out of a Go tree what only Go's own tests and documentation
// need.
func includeGoFile(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	if slices.Contains([]string{"api", "doc", "misc", "test", ".git", ".github"}, top) {
		return false
	}
	return !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "/testdata") && !strings.Contains(path, "/testdata/")
}

func imageConfig(host map[string]string) ociConfig {
	env := []string{
		"PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOPATH=/go",
		"GOTOOLCHAIN=local",
		"CGO_ENABLED=0",
		"HOME=/root",
		"LC_ALL=C.UTF-8",
	}
	for _, name := range goSettings() {
		if v := host[name]; v != "" && (name != "GOSUMDB" || v != "sum.golang.org") {
			env = append(env, name+"="+v)
		}
	}
	return ociConfig{Env: env, WorkingDir: "/", Entrypoint: []string{"codegen"}}
}

// readGo is what `go env` says here.
func readGo(ctx context.Context) (map[string]string, error) {
	args := append([]string{"env", "-json", "GOROOT", "GOVERSION", "GOPROXY"}, goSettings()...)
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, e.Stderr)
		}
		return nil, fmt.Errorf("ask go for its settings: %w", err)
	}
	var env map[string]string
	if err := json.Unmarshal(out, &env); err != nil {
		return nil, fmt.Errorf("read go env: %w", err)
	}
	return env, nil
}
