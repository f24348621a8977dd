package gotool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// Sources tells the files that the program slipway is compiled from, its
// packages' Go files for every system and what they embed, and their digest: that of
// "SHA256 PATH" lines, sorted by path.
func Sources(ctx context.Context, source string) (own func(path string) bool, digest string, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,GoFiles,IgnoredGoFiles,EmbedFiles,Module", ".")
	cmd.Dir = source
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, "", fmt.Errorf("list the sources of slipway: %w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	files := map[string]bool{"go.mod": true, "go.sum": true}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p struct {
			Dir                                 string
			GoFiles, IgnoredGoFiles, EmbedFiles []string
			Module                              *struct{ Main bool }
		}
		if err := decoder.Decode(&p); err != nil {
			return nil, "", fmt.Errorf("list the sources of slipway: %w", err)
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(source, p.Dir)
		if err != nil {
			return nil, "", fmt.Errorf("list the sources of slipway: %w", err)
		}
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.EmbedFiles) {
			if !strings.HasSuffix(name, "_test.go") {
				files[filepath.ToSlash(filepath.Join(dir, name))] = true
			}
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		one, err := bundle.Sum(ctx, filepath.Join(source, name))
		if err != nil {
			return nil, "", fmt.Errorf("read the sources of slipway: %w", err)
		}
		fmt.Fprintf(sum, "%s %s\n", one, name)
	}
	return func(path string) bool { return files[path] }, "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
