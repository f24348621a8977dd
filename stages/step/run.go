package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// Grace is how long a step may take to return after its context has ended. No other run
// begins to work before that.
const Grace = lock.DefaultGrace

// verifyLimit bounds the check of an earlier result, and verifyGrace how long the check
// may then take to return its error.
const (
	verifyLimit = time.Minute
	verifyGrace = 15 * time.Second
)

var errTimeUp = errors.New("the step's time is up")

// Main runs `slipway step <stage>/<step>` and returns the exit code: the class of the fault, or 0. The
// first SIGINT or SIGTERM cancels the step's context, the second ends the process.
func Main(ctx context.Context, reg *Registry, args []string, stdout, stderr io.Writer) int {
	var request, result string
	dirs := Dirs{}.OrDefault()
	flags := pflag.NewFlagSet("slipway step", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&request, "request", contract.RequestFile, "file with the request")
	flags.StringVar(&result, "result", contract.ResultFile, "file for the result")
	flags.StringVar(&dirs.State, "state", dirs.State, "the deployment's state volume")
	flags.StringVar(&dirs.Platform, "platform", dirs.Platform, "the platform release")
	flags.StringVar(&dirs.Bundle, "bundle", dirs.Bundle, "the bundle's manifests")
	flags.StringVar(&dirs.Terraform, "terraform", dirs.Terraform, "the provider's Terraform root")
	flags.StringVar(&dirs.Tools, "tools", dirs.Tools, "the pinned tools")
	flags.StringVar(&dirs.Access, "access", dirs.Access, "the access to an existing cluster")
	flags.Usage = func() {
		fmt.Fprintf(stderr, "Runs one step in its container.\n\n  slipway step <stage>/<step> [flags]\n\n%s\nSteps:\n  %s\n",
			flags.FlagUsages(), strings.Join(reg.Names(), "\n  "))
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return int(fault.OK)
		}
		return int(fault.Usage)
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "slipway step: give one step, such as infrastructure/preflight")
		return int(fault.Usage)
	}

	sigctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(sigctx, stop) // the second signal has its default effect

	var res contract.Result
	req, err := readRequest(flags.Arg(0), request)
	if err != nil {
		res = finish(result, "", contract.Result{Status: contract.Failed, Fault: badRequest("request", err), Started: time.Now().UTC()}, stderr)
	} else {
		res = Perform(sigctx, reg, req, dirs, result, stderr)
	}
	fmt.Fprintf(stdout, "%s\n", res.Status)
	if res.Fault != nil {
		return int(res.Fault.Class)
	}
	return int(fault.OK)
}

// Perform runs the step of req in this process, with its progress on screen, and writes its record to the
// state volume and its result to a file, unless that is empty.
func Perform(ctx context.Context, reg *Registry, req contract.Request, dirs Dirs, file string, screen io.Writer) contract.Result {
	res := contract.Result{Status: contract.Failed, Started: time.Now().UTC()}
	code, err := find(reg, req)
	if err != nil {
		res.Fault = badRequest("request", err)
		return finish(file, "", res, screen)
	}
	dirs = dirs.OrDefault()
	dir := recordDir(dirs.State, req.Run, req.Stage, req.Step)
	logFile, err := openLog(dir, req)
	if err != nil {
		res.Fault = badState("open the step's log", err)
		return finish(file, "", res, screen)
	}
	defer func() { _ = logFile.Close() }()

	env, err := environment(reg, req, dirs, logFile, screen)
	log.SetOutput(env.tools) // Helm logs values, for example
	defer func() {
		if err := env.close(); err != nil {
			fmt.Fprintln(screen, "slipway: close the deployment's store:", err)
		}
	}()
	if err != nil {
		res.Fault = badState("reach the cluster", err)
		return finish(file, dir, res, screen)
	}
	res.Status, res.Output, res.Fault = runStep(ctx, code, req, env, &res.Began)
	res.Counts = env.Counts()
	if res.Fault != nil {
		res.Fault = res.Fault.Map(env.Clean)
		res.Fault.Log = filepath.Join("steps", req.Stage+"."+req.Step, "log.txt")
		env.Logger.Error("step failed", "code", res.Fault.Code, "error", res.Fault)
	}
	res = finish(file, dir, res, screen)
	env.flush()
	if err := logFile.Sync(); err != nil {
		fmt.Fprintln(screen, "slipway: sync the step's log:", err)
	}
	if err := env.publish(ctx, dir); err != nil {
		fmt.Fprintln(screen, "slipway: keep the step's log:", err)
		if res.Fault == nil {
			res.Status, res.Output, res.Fault = contract.Failed, nil, env.classify(ctx, 0, err)
			res = finish(file, dir, res, screen)
		}
	}
	return res
}

// environment is that of the step that req names; it must be closed.
func environment(reg *Registry, req contract.Request, dirs Dirs, record, screen io.Writer) (*Env, error) {
	env := NewEnv(req.Run, req.ID(), dirs, record, screen)
	env.Deployment = req.Deployment
	env.Backend = state.At(env.StateDir, os.Getenv, reg.Stores)
	return env, errors.Join(env.RedactSecrets(), env.useAccess(dirs.Access))
}

func readRequest(id, file string) (contract.Request, error) {
	var req contract.Request
	b, err := contract.ReadParts(file)
	if err != nil {
		return req, err
	}
	if err := decode(b, &req); err != nil {
		return req, fmt.Errorf("%s: %w", file, err)
	}
	if req.Stage+"/"+req.Step != id {
		return req, fmt.Errorf("%s is for step %s/%s, not for %s", file, req.Stage, req.Step, id)
	}
	return req, nil
}

// find checks a request and returns the code of its step.
func find(reg *Registry, req contract.Request) (untypedStep, error) {
	id := cmp.Or(req.Code, req.ID())
	code, ok := reg.steps[id]
	switch {
	case !ok:
		return code, fmt.Errorf("step %q does not exist; there are %s", id, strings.Join(reg.Names(), ", "))
	case !journal.Name(req.Stage) || !journal.Name(req.Step):
		return code, fmt.Errorf("step %q has no name for a file", req.ID())
	case req.Run == "" || req.Run != filepath.Base(req.Run) || strings.HasPrefix(req.Run, "."):
		return code, fmt.Errorf("run id %q is not a file name", req.Run)
	case req.Timeout < 0:
		return code, fmt.Errorf("timeout %s is negative", time.Duration(req.Timeout))
	}
	return code, nil
}

// openLog makes the step's directory with the request and opens the log, to which a retry appends. It
// removes the result and the waits of an earlier attempt: a step without a result counts as running.
func openLog(dir string, req contract.Request) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	b, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{resultFile, contract.WaitsFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := atomicfile.Write(filepath.Join(dir, "request.json"), append(b, '\n'), 0o644); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, "log.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// runStep reuses the journal's result or calls the step's code, and records the attempt
// in the journal. It sets began to when it calls the code.
func runStep(ctx context.Context, code untypedStep, req contract.Request, env *Env, began *time.Time) (contract.Status, json.RawMessage, *fault.Fault) {
	timeout := time.Duration(req.Timeout)
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeUp)
		defer cancel()
	}
	fail := func(err error) (contract.Status, json.RawMessage, *fault.Fault) {
		return contract.Failed, nil, env.classify(ctx, timeout, err)
	}
	records, err := openRecords(ctx, env, req)
	if err != nil {
		return fail(err)
	}
	if ctx, err = records.work(ctx, env); err != nil {
		return fail(err)
	}
	out, why := records.reuse(ctx, code, env)
	if why == nil {
		return contract.Reused, out, nil
	}
	env.Logger.Info("earlier result not reused", "reason", why)
	if req.VerifyOnly || ctx.Err() != nil { // verifying took all of the time, and why says on what
		return fail(why)
	}
	env.Logger.Info("step started", "run", req.Run, "step", env.ID, "timeout", timeout,
		"input", req.Digests.Input, "release", req.Digests.Release, "tools", req.Digests.Tools)
	if err := env.announce(ctx); err != nil {
		return fail(err)
	}
	attempt, err := records.ledger.Begin(ctx, req.Run, req.Stage, req.Step, req.Digests)
	if err != nil {
		return fail(badState("write the journal", err))
	}
	*began = attempt.Started
	lasting := context.WithoutCancel(ctx) // the outcome is recorded even after a cancellation
	out, err = guarded(ctx, Grace, env, func() (json.RawMessage, error) { return code.run(ctx, env, req.Input) })
	if err == nil && env.secrets.In(out) {
		err = &fault.Fault{
			Code: codeSecret, Class: fault.Bug, Op: "run " + env.ID, Err: errSecret,
			Fix: "report this with the step's log: slipway report",
		}
	}
	if err != nil {
		f := env.classify(ctx, timeout, err).Map(env.Clean)
		if err := records.ledger.End(lasting, attempt, nil, f); err != nil {
			env.Logger.Warn("the journal does not show that the step failed", "error", err)
		}
		return contract.Failed, nil, f
	}
	if err := records.ledger.End(lasting, attempt, out, nil); err != nil {
		return contract.Failed, nil, badState("write the journal", err)
	}
	env.Logger.Info("step succeeded", "step", env.ID)
	return contract.Succeeded, out, nil
}

// guarded calls f and turns a panic into an error. It abandons a call that does not
// return within grace after ctx has ended, since the process exits soon.
func guarded(ctx context.Context, grace time.Duration, env *Env, f func() (json.RawMessage, error)) (json.RawMessage, error) {
	type answer struct {
		out json.RawMessage
		err error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: &panicked{value: v, stack: debug.Stack()}}
			}
			done <- a
		}()
		a.out, a.err = f()
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case a = <-done:
		case <-t.C:
			a.err = fmt.Errorf("the step did not stop within %s after it was told to: %w", grace, ctx.Err())
		}
	}
	if p, ok := errors.AsType[*panicked](a.err); ok {
		fmt.Fprintf(env.Output(), "panic: %v\n\n%s\n", p.value, p.stack)
	}
	return a.out, a.err
}

const publishLimit = time.Minute

// publish copies the step's files to the deployment's bucket, if any, also after a cancellation.
func (e *Env) publish(ctx context.Context, dir string) error {
	if !e.Backend.Remote() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishLimit)
	defer cancel()
	s, err := e.Own(ctx)
	if err != nil {
		return err
	}
	return e.Backend.Publish(ctx, s, dir)
}

// announce records in a deployment's bucket, if it has one, that the step is running: it
// uploads the step's files so far and deletes the result that an earlier check left there.
func (e *Env) announce(ctx context.Context) error {
	if !e.Backend.Remote() {
		return nil
	}
	s, err := e.Own(ctx)
	if err != nil {
		return err
	}
	stage, step, _ := strings.Cut(e.ID, "/")
	if err := s.Delete(ctx, filepath.ToSlash(filepath.Join(recordDir("", e.Run, stage, step), resultFile))); err != nil {
		return err
	}
	return e.publish(ctx, recordDir(e.StateDir, e.Run, stage, step))
}

const resultFile = "result.json"

// finish writes the result to the step's directory and to a file; either may be empty.
func finish(file, dir string, res contract.Result, stderr io.Writer) contract.Result {
	res.Finished = time.Now().UTC()
	b, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		res.Status, res.Output, res.Fault = contract.Failed, nil, badState("write the step's result", err)
		b, _ = json.MarshalIndent(res, "", "  ")
	}
	b = append(b, '\n')
	if dir != "" {
		err = atomicfile.Write(filepath.Join(dir, resultFile), b, 0o644)
	}
	if file != "" {
		err = errors.Join(err, atomicfile.Write(file, b, 0o644))
	}
	if err != nil {
		fmt.Fprintln(stderr, "slipway: write the step's result:", err)
		if res.Fault == nil {
			res.Status, res.Output, res.Fault = contract.Failed, nil, badState("write the step's result", err)
		}
	}
	return res
}
