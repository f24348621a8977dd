package conductor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
)

const (
	// codeHookFailed: a hook failed or did not end in time; the error has its place, exit code and last
	// line, around configuring its last lines.
	codeHookFailed fault.Code = "HOK-001"
)

// hookLogLimit is how much of the output of a hook goes into a run's record, in bytes.
const hookLogLimit = 32 << 10

// hookRunner runs the configuration's hooks of a workflow, some at the same time.
type hookRunner struct {
	run, deployment, workflow string
	// exec runs a hook, once, with what it gets from Slipway in env.
	exec    func(ctx context.Context, h config.Hook, on pipeline.Key, env map[string]string) (containers.HookOutcome, error)
	observe func(pipeline.Event)
	lock    *deploymentLock // nil: no hook changes the deployment

	mu    sync.Mutex
	ended []pipeline.Result
	logs  map[string]string // by name in the run's directory
}

// boundHooks are the hooks of a workflow that have a place in its graph.
func boundHooks(hooks []config.Hook, graph []pipeline.Node) []config.Hook {
	return slices.DeleteFunc(slices.Clone(hooks), func(h config.Hook) bool {
		at, _ := h.Target()
		return at != config.WholeWorkflow && at != config.EveryStep &&
			!slices.ContainsFunc(graph, func(n pipeline.Node) bool { return n.String() == at || n.Stage == at })
	})
}

// bind is the hooks as the pipeline takes them, in the same order.
func (r *hookRunner) bind(hooks []config.Hook) []pipeline.Hook {
	out := make([]pipeline.Hook, len(hooks))
	for i, h := range hooks {
		at, before := h.Target()
		switch at {
		case config.WholeWorkflow:
		case config.EveryStep:
			out[i].Step = pipeline.EveryStep
		default:
			out[i].Step = at
		}
		if before {
			out[i].Before = func(ctx context.Context, key pipeline.Key) error {
				return r.once(ctx, h, pipeline.Result{Key: key, Status: pipeline.Pending})
			}
			continue
		}
		out[i].After = func(ctx context.Context, on pipeline.Result) error {
			if fault.ClassOf(on.Err) == fault.Cancelled {
				on.Status = pipeline.Cancelled // a whole run only knows that it failed
			}
			if !on.Status.OK() && !h.Always || r.lock.loss() != nil {
				return nil
			}
			return r.once(ctx, h, on)
		}
	}
	return out
}

// hooksTimeout bounds the hooks after a step, or after the workflow, together.
func hooksTimeout(hooks []config.Hook) time.Duration {
	sum := pipeline.DefaultCleanupTimeout
	for _, h := range hooks {
		if _, before := h.Target(); !before {
			sum += time.Duration(h.Timeout) + time.Minute // its container must come up
		}
	}
	return sum
}

// once runs a hook and records its outcome. on is the result of its step so far; a zero key is the workflow.
func (r *hookRunner) once(ctx context.Context, h config.Hook, on pipeline.Result) error {
	res := pipeline.Result{Key: hookKey(h, on.Key), Status: pipeline.Running, Started: time.Now()}
	if r.recorded() {
		res.Detail.Log = path.Join("hooks", strings.ReplaceAll(res.Name, "/", ".")+".txt")
	}
	r.observe(pipeline.Event{Time: res.Started, Status: res.Status, Result: res})

	ctx, stop := r.lock.bound(ctx)
	defer stop()
	own, end := stages.Span(ctx, res.Key)
	out, err := r.exec(own, h, on.Key, r.env(h, on))
	interrupted := err != nil && ctx.Err() != nil
	if !interrupted {
		err = r.verdict(h, on, res.Detail.Log, out, err)
	}
	res.Finished, res.Err = time.Now(), err
	switch {
	case err == nil:
		res.Status = pipeline.Succeeded
	case interrupted:
		res.Status = pipeline.Cancelled
	case h.Optional:
		res.Status, err = pipeline.Warned, nil
	default:
		res.Status = pipeline.Failed
	}
	end(res.Status, res.Err)
	if r.recorded() {
		r.record(h, on.Key, res, out)
	}
	r.observe(pipeline.Event{Time: res.Finished, Status: res.Status, Result: res})
	return err
}

func (r *hookRunner) record(h config.Hook, on pipeline.Key, res pipeline.Result, out containers.HookOutcome) {
	head := fmt.Sprintf("%s hook %s %s: %s after %s\n", res.Started.UTC().Format(time.RFC3339), h.Name, r.place(h, on),
		res.Status, res.Elapsed().Round(time.Millisecond))
	if res.Err != nil {
		head += res.Err.Error() + "\n"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logs == nil {
		r.logs = map[string]string{}
	}
	r.logs[res.Detail.Log] = head + "\n" + end(out.Output, hookLogLimit)
	r.ended = append(r.ended, res)
}

// end is the end of a long output, from the beginning of a line where there is one.
func end(output string, limit int) string {
	output = strings.ToValidUTF8(output, "\uFFFD")
	if len(output) <= limit {
		return output
	}
	rest := strings.ToValidUTF8(output[len(output)-limit:], "")
	if _, lines, ok := strings.Cut(rest, "\n"); ok {
		rest = lines
	}
	return fmt.Sprintf("[%d bytes before this are left out]\n%s", len(output)-len(rest), rest)
}

// hookKey is a hook's name in events and record, with the step if the hook runs around every step.
func hookKey(h config.Hook, on pipeline.Key) pipeline.Key {
	key := pipeline.Key{Stage: report.HooksStage, Name: h.Name}
	if at, _ := h.Target(); at == config.EveryStep {
		key.Name += "@" + on.String()
	}
	return key
}

func (r *hookRunner) place(h config.Hook, on pipeline.Key) string {
	what := "the workflow"
	switch {
	case on.Stage != "" && on.Name == "":
		what = "the stage " + on.Stage
	case on != (pipeline.Key{}):
		what = on.String()
	case r.workflow == config.Configure:
		what = "configuring"
	}
	if _, before := h.Target(); before {
		return "before " + what
	}
	return "after " + what
}

// maxEnvError is how much of an error a hook gets, in bytes.
const maxEnvError = 4 << 10

// env are the variables that a hook gets. Each is there, though it may be empty.
func (r *hookRunner) env(h config.Hook, on pipeline.Result) map[string]string {
	env := map[string]string{
		"SLIPWAY_RUN":        r.run,
		"SLIPWAY_DEPLOYMENT": r.deployment,
		"SLIPWAY_WORKFLOW":   r.workflow,
		"SLIPWAY_HOOK":       h.Name,
		"SLIPWAY_STAGE":      on.Stage,
		"SLIPWAY_STEP":       on.Name,
		"SLIPWAY_STATUS":     string(on.Status),
		"SLIPWAY_SECONDS":    strconv.FormatFloat(on.Elapsed().Seconds(), 'f', 3, 64),
		"SLIPWAY_ERROR_CODE": "",
		"SLIPWAY_ERROR":      "",
	}
	if on.Err != nil {
		text := redact.External(on.Err.Error()) // the engine shows it
		env["SLIPWAY_ERROR"] = strings.ToValidUTF8(text[:min(len(text), maxEnvError)], "")
		if f, ok := errors.AsType[*fault.Fault](on.Err); ok {
			env["SLIPWAY_ERROR_CODE"] = string(f.Code)
		}
	}
	return env
}

// verdict is the fault of a hook that did not succeed.
func (r *hookRunner) verdict(h config.Hook, on pipeline.Result, log string, out containers.HookOutcome, err error) error {
	remains := "finished steps are kept"
	if !r.recorded() {
		remains = configured(h, on)
	}
	f := &fault.Fault{
		Code: codeHookFailed, Class: fault.Step, Op: fmt.Sprintf("run the hook %s %s", h.Name, r.place(h, on.Key)), Log: log, Err: err,
		Fix: "correct what its output says, then run the same command again: " + remains + "; optional: true makes its failure a warning",
	}
	said := ""
	if line := lastWords(out.Output); line != "" {
		said = ": " + line
	}
	switch {
	case err != nil:
	case out.TimedOut:
		f.Class = fault.Timeout
		f.Err = fmt.Errorf("it did not end within %s%s", h.Timeout, said)
		f.Fix = "correct what its output says, or give it more time (hooks: timeout), then run the same command again: " + remains
	case out.ExitCode != 0:
		f.Err = fmt.Errorf("exit status %d%s", out.ExitCode, said)
	default:
		return nil
	}
	if !r.recorded() {
		f.Err = withOutput(f.Err, out.Output)
	}
	return f
}

// lastWords is the last line of an output that says something, fit for a terminal.
func lastWords(output string) string {
	if lines := lastLines(output, 1); len(lines) > 0 {
		return strings.TrimSpace(lines[0])
	}
	return ""
}

// lastLines are the last lines of an output that are not blank, n at most, fit for a terminal.
func lastLines(output string, n int) []string {
	const most = 300
	var out []string
	lines := strings.Split(report.Clean(end(output, n<<11)), "\n")
	for _, line := range slices.Backward(lines) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if runes := []rune(line); len(runes) > most {
			line = string(runes[:most]) + "…"
		}
		if line != "" {
			out = append(out, line)
		}
		if len(out) == n {
			break
		}
	}
	slices.Reverse(out)
	return out
}
