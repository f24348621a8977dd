package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// helmfilePath is where the checkout has helmfile once it has been built.
func helmfilePath(root string) string { return filepath.Join(root, "bin", "helmfile") }

// buildHelmfile builds it for a bundle's toolchain. Nothing but the bench uses it, so that
// no bundle holds it.
func buildHelmfile(ctx context.Context, root, target string) error {
	system, arch, _ := strings.Cut(target, "/")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "ci/test/bench/helmfile"),
		"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w", "-o", helmfilePath(root), "github.com/helmfile/helmfile")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+system, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build helmfile: %w\n%s", err, out)
	}
	return nil
}
