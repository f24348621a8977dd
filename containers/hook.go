package containers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Where a hook finds what it is given.
const (
	HookKubeconfig = "/slipway/kubeconfig"
	HookConfig     = "/slipway/config.yaml" // the deployment's configuration
)

// MaskCommand is the command of this program that runs a hook's, and masks in its output the
// environment variables of MaskSecret and the kubeconfig of MaskKubeconfig. The engine masks a
// secret only as it is, and sends what a container prints to its telemetry.
const (
	MaskCommand    = "mask"
	MaskSecret     = "secret"
	MaskKubeconfig = "kubeconfig"
)

const masker = "/slipway/bin/slipway"

// hookGrace is how long a hook whose time is up may take to end in good order.
const hookGrace = 10 * time.Second

// Hook is one execution of a command of the user's.
type Hook struct {
	// Image is a reference by digest; the toolchain if empty. Neither gets the
	// deployment's volumes.
	Image string
	// Args is the command line; an image's entrypoint is not used.
	Args []string
	// Env are environment variables, which the engine shows in its telemetry.
	Env map[string]string
	// Secrets are environment variables that are masked in the output.
	Secrets map[string]*dagger.Secret
	// Files are put into the container, by path; whoever runs in it may read them.
	Files map[string]*dagger.File
	// Kubeconfig is mounted at HookKubeconfig, and its credentials are masked; nil for none.
	Kubeconfig *dagger.Secret
	// Cluster is bound under the name "cluster"; nil for none.
	Cluster *dagger.Service
	// Timeout is how long the command may run.
	Timeout time.Duration
}

// HookOutcome is how a hook ended.
type HookOutcome struct {
	ExitCode int
	Output   string // standard output and error as a terminal shows them, without colours; empty if the engine threw them away
	TimedOut bool   // it was ended because its time was up
}

// errHookTime is the cause of a hook's context when its time is up.
var errHookTime = errors.New("the hook's time is up")

// Hook runs h once, uncached. An exit code other than 0 and a time-out are
// outcomes, not errors; an error means that the engine could not run the command.
func (d *Deployment) Hook(ctx context.Context, h Hook) (HookOutcome, error) {
	limited, cancel := context.WithTimeoutCause(ctx, h.limit(), errHookTime)
	defer cancel()
	started := time.Now()
	done := d.hook(h).WithExec(h.command(), dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(limited)
	switch {
	case ctx.Err() != nil:
		return HookOutcome{}, context.Cause(ctx)
	case limited.Err() != nil:
		return HookOutcome{TimedOut: true}, nil
	}
	if x, ok := errors.AsType[*dagger.ExecError](err); ok {
		return HookOutcome{ExitCode: x.ExitCode, Output: redact.Plain(x.Stdout + x.Stderr)}, nil
	} else if err != nil {
		return HookOutcome{}, err
	}
	out := HookOutcome{ExitCode: code, TimedOut: h.timedOut(code, time.Since(started))}
	if out.Output, err = done.CombinedOutput(limited); err != nil {
		// How it ended is known; more than the engine hands out is no failure.
		out.Output = fmt.Sprintf("(its output cannot be read: %s)\n", err)
	}
	out.Output = redact.Plain(out.Output)
	return out, nil
}

// hook is the container in which h runs, without its command.
func (d *Deployment) hook(h Hook) *dagger.Container {
	ctr := d.images.Toolchain
	// A secret belongs to root. Whoever runs another image may be somebody else,
	// and nobody else is in it.
	mount := dagger.ContainerWithMountedSecretOpts{Mode: 0o400}
	if h.Image != "" {
		ctr = d.client.Container().From(h.Image)
		mount = dagger.ContainerWithMountedSecretOpts{Mode: 0o444, Owner: "0:0"}
	}
	if h.masked() {
		ctr = ctr.WithMountedFile(masker, d.images.Toolchain.File(binDir+"/"+runner))
	}
	if h.Cluster != nil {
		ctr = ctr.WithServiceBinding("cluster", h.Cluster)
	}
	if h.Kubeconfig != nil {
		ctr = ctr.WithMountedSecret(HookKubeconfig, h.Kubeconfig, mount)
	}
	for _, path := range slices.Sorted(maps.Keys(h.Files)) {
		ctr = ctr.WithFile(path, h.Files[path], dagger.ContainerWithFileOpts{Permissions: 0o644})
	}
	return fresh(Access{Env: h.Env, Secrets: h.Secrets}.into(ctr))
}

// masked tells whether anything that h may print is secret.
func (h Hook) masked() bool { return len(h.Secrets) > 0 || h.Kubeconfig != nil }

// command is h's command line. In the toolchain a program ends it when its time
// is up, so that its output is kept; another image need not have that program.
func (h Hook) command() []string {
	var all []string
	if h.masked() {
		all = append(all, masker, MaskCommand)
		for _, name := range slices.Sorted(maps.Keys(h.Secrets)) {
			all = append(all, "--"+MaskSecret, name)
		}
		if h.Kubeconfig != nil {
			all = append(all, "--"+MaskKubeconfig, HookKubeconfig)
		}
		all = append(all, "--")
	}
	if h.Image == "" {
		seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
		all = append(all, "timeout", "--kill-after="+seconds(hookGrace), seconds(h.Timeout))
	}
	return append(all, h.Args...)
}

// limit is when the engine is told to end h.
func (h Hook) limit() time.Duration {
	if h.Image != "" {
		return h.Timeout
	}
	return h.Timeout + 2*hookGrace // the container's start is in it
}

// The exit codes of timeout(1) for a command that it ended.
const (
	exitTimeUp = 124
	exitKilled = 128 + 9
)

// timedOut tells whether an exit code is that of timeout(1) when the time is up.
func (h Hook) timedOut(code int, took time.Duration) bool {
	return h.Image == "" && (code == exitTimeUp || code == exitKilled) && took >= h.Timeout
}
