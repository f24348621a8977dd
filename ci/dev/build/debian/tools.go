package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/fault"
)

// CodeBuild: what `make engine` or `make bundle` needs is missing, or the engine or its image could
// not be built.
const CodeBuild = "ENG-003"

// Tool is a command that building needs, and the package that has it.
type Tool struct{ Command, Package string }

// Need makes sure that the tools are on PATH. Those that are not, it installs
// with apt-get, reporting which through notify. Without root or apt-get it returns a
// fault that names the command to run.
func Need(ctx context.Context, notify func(text string), tools ...Tool) error {
	missing := Missing(tools...)
	if len(missing) == 0 {
		return nil
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	command := "apt-get " + strings.Join(install, " ")
	failed := func(err error) error {
		return &fault.Fault{Class: fault.Preflight, Code: CodeBuild, Op: "prepare this machine for building", Err: err,
			Fix: "as root on Debian, run: apt-get update && " + command + "; elsewhere, install these by other means"}
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return failed(errors.Join(fmt.Errorf("missing packages, which only root can install: %s", strings.Join(missing, ", ")), err))
	}
	if notify != nil {
		notify("installing " + strings.Join(missing, ", "))
	}
	updateErr := apt(ctx, "update") // lists of others' mirrors may well not answer: the install decides
	if err := apt(ctx, install...); err != nil {
		return failed(errors.Join(err, updateErr))
	}
	return nil
}

// Missing lists the packages of the tools that are not on PATH.
func Missing(tools ...Tool) []string {
	var missing []string
	for _, t := range tools {
		if _, err := exec.LookPath(t.Command); err != nil {
			missing = append(missing, t.Package)
		}
	}
	return missing
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, build.LastLines(output.String(), 10))
	}
	return nil
}
