package conductor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Kernel is the release of the kernel of the engine's machine.
func (r *Records) Kernel(ctx context.Context) (string, error) {
	text, err := r.deployment.Toolchain(nil).WithExec([]string{"uname", "-r"}).Stdout(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the engine's machine for its kernel: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// inStep is the container that a step ("stage/step") of a run had: its request and files, the tools, and
// the cluster, if there is one. It has no secrets besides the cluster's.
func (c *Conductor) inStep(ctx context.Context, run, step string) (*dagger.Container, error) {
	ctr, err := c.toolchain(ctx)
	if errors.Is(err, &fault.Fault{Code: contract.CodeNotThere}) { // it failed before
		ctr, err = c.Cluster.deployment.Toolchain(nil), nil
	}
	if err != nil {
		return nil, err
	}
	root, err := directory(c.opts.Client, c.inputs.Environment.Root)
	if err != nil {
		return nil, err
	}
	request := path.Join(contract.StateDir, "runs", run, "steps", strings.Replace(step, "/", ".", 1), "request.json")
	ctr = ctr.WithMountedDirectory(contract.TerraformDir, root).
		WithMountedDirectory(contract.BundleDir+"/manifests", c.opts.Images.Manifests)
	if c.opts.ReleaseDir != nil {
		ctr = ctr.WithMountedDirectory(contract.PlatformDir, c.opts.ReleaseDir)
	}
	ctr, err = ctr.WithExec([]string{"cp", request, contract.RequestFile}).Sync(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, &fault.Fault{Code: contract.CodeNotThere, Class: fault.Usage, Op: "open the container of " + step, Err: fmt.Errorf("the step left no request: %w", err),
			Fix: "name a step that ran: slipway runs show " + fault.Quote(run) + " lists them"}
	}
	return ctr, err
}

// StepShell runs a command in the container of a step of a run, and returns its exit code,
// once it has written what the command printed to out and errw.
func (c *Conductor) StepShell(ctx context.Context, run, step string, args []string, out, errw io.Writer) (int, error) {
	ctr, err := c.inStep(ctx, run, step)
	if err != nil {
		return 0, err
	}
	return containers.Command(ctx, ctr, args, out, errw)
}

// StepID is the Dagger id of that container.
func (c *Conductor) StepID(ctx context.Context, run, step string) (string, error) {
	ctr, err := c.inStep(ctx, run, step)
	if err != nil {
		return "", err
	}
	id, err := ctr.ID(ctx)
	return string(id), err
}
