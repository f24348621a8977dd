// Package incontainer is what this program does in containers: it has the steps, reads and writes
// a deployment's state, holds its lock, makes plans, and says what a release contains.
package incontainer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// State is a deployment's state: a volume, or a bucket that the environment names.
type State struct {
	backend state.Backend
	store   *store.Store
	errw    io.Writer
}

// WithState opens the state in the volume at root and calls do. A fault is written to
// errw for the conductor, too. No secret of the container is in the error.
func WithState(ctx context.Context, root string, stores map[string]store.Opener, errw io.Writer, do func(*State) error) (err error) {
	backend := state.At(root, os.Getenv, stores)
	defer func() { err = reportFault(errw, backend, err) }()
	s, err := backend.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(&State{backend: backend, store: s, errw: errw})
}

// reportFault returns err without the secrets of a container with the state at backend and what does
// something to a terminal, and writes a fault in it to errw for the conductor.
func reportFault(errw io.Writer, backend state.Backend, err error) error {
	if err == nil {
		return nil
	}
	var secrets redact.Secrets
	if unread := backend.Secrets(secrets.Add); unread != nil {
		err = errors.Join(err, unread)
	}
	err = fault.Map(err, func(text string) string { return secrets.Clean(text) })
	containers.WriteFault(errw, err)
	return err
}

// Answer carries out the contract.Action that is the first argument, with its input as JSON in the
// second. It writes the answer, if there is one, to file. What is in the other arguments is the
// command of a wipe. When stop is closed, a lock that is held is released.
func (s *State) Answer(ctx context.Context, args []string, file string, stop <-chan struct{}) error {
	do, known := s.actions(args[min(2, len(args)):], stop)[args[0]]
	if !known {
		return fmt.Errorf("there is no action %q", args[0])
	}
	input := "{}"
	if len(args) > 1 {
		input = args[1]
	}
	out, err := do(ctx, []byte(input))
	if err != nil || out == nil {
		return err
	}
	return writeJSON(file, out)
}

// actions are functions by name. The input is JSON; nil means that there is no answer.
type actions map[string]func(ctx context.Context, input []byte) (any, error)

func (s *State) actions(command []string, stop <-chan struct{}) actions {
	type nothing = contract.Nothing
	all := actions{}
	on(all, contract.ShowState, func(ctx context.Context, _ nothing) (*contract.Stored, error) { return s.stored(ctx) })
	on(all, contract.ListRuns, func(ctx context.Context, _ nothing) ([]contract.RunSummary, error) { return s.runs(ctx) })
	on(all, contract.ShowRun, func(ctx context.Context, in contract.RecordInput) (*contract.RunDetail, error) {
		return s.run(ctx, in.ID)
	})
	on(all, contract.ListBackups, func(ctx context.Context, _ nothing) ([]contract.BackupSummary, error) { return s.backups(ctx) })
	on(all, contract.ReadBackup, func(ctx context.Context, in contract.RecordInput) (*contract.BackupRelease, error) {
		return s.backup(ctx, in.ID)
	})
	on(all, contract.ListIndex, func(context.Context, nothing) ([]string, error) { return entries(contract.IndexDir) })
	on(all, contract.ListDeployments, func(ctx context.Context, _ nothing) ([]contract.DeploymentSummary, error) {
		return s.list(ctx, contract.StatesDir)
	})
	on(all, contract.ReadKubeconfig, func(ctx context.Context, _ nothing) ([]byte, error) { return s.kubeconfig(ctx) })
	on(all, contract.WriteReport, func(ctx context.Context, in contract.RecordInput) (string, error) {
		return s.report(ctx, in.Path, in.ID)
	})
	on(all, contract.OpenState, s.open)
	on(all, contract.BreakLock, func(ctx context.Context, in contract.UnlockInput) (lock.Record, error) {
		return s.lock(s.errw, 0).Unlock(ctx, in.Who, in.Force)
	})
	on(all, contract.KeepRun, func(ctx context.Context, in contract.RecordInput) (nothing, error) {
		return nothing{}, s.keep(ctx, in.Path)
	})
	on(all, contract.PurgeState, func(ctx context.Context, in contract.HeldInput) (nothing, error) { return nothing{}, s.purge(ctx, in) })
	on(all, contract.HoldLock, func(ctx context.Context, in contract.HoldInput) (nothing, error) {
		return nothing{}, s.hold(ctx, stop, in)
	})
	on(all, contract.WatchLock, func(ctx context.Context, in contract.HeldInput) (nothing, error) {
		return nothing{}, s.watch(ctx, in.Who.Run)
	})
	on(all, contract.WipeCluster, func(ctx context.Context, in contract.HeldInput) (nothing, error) {
		return nothing{}, s.wipe(ctx, in.Who.Run, command)
	})
	on(all, contract.AwaitPods, func(ctx context.Context, _ nothing) (nothing, error) {
		return nothing{}, awaitPods(ctx, contract.KubeconfigFile, contract.NodePods, s.errw)
	})
	return all
}

// on adds an action with its code, between JSON and JSON.
func on[In, Out any](all actions, action contract.Action[In, Out], do func(context.Context, In) (Out, error)) {
	all[string(action)] = func(ctx context.Context, input []byte) (any, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("decode the request: %w", err)
		}
		out, err := do(ctx, in)
		if _, none := any(out).(contract.Nothing); none {
			return nil, err
		}
		return out, err
	}
}

// purge removes the state for a run, which has the lock.
func (s *State) purge(ctx context.Context, req contract.HeldInput) error {
	return s.under(ctx, req.Who.Run, func(ctx context.Context, w *state.Work) error {
		if err := state.Purge(ctx, s.backend, w); err != nil || req.Entry == "" {
			return err
		}
		if err := os.Remove(req.Entry); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// under calls do for a run as long as that has the lock.
func (s *State) under(ctx context.Context, run string, do func(context.Context, *state.Work) error) (err error) {
	ctx, w, err := s.backend.Work(ctx, s.store, run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.End()) }()
	if err = do(ctx, w); err == nil {
		return nil
	}
	return cmp.Or(lock.Lost(ctx), err) // what fails then fails for that
}

// keep stores what a run left in file; without the lock only the run's own files, with an error.
func (s *State) keep(ctx context.Context, file string) error {
	data, err := contract.ReadParts(file)
	if err != nil {
		return fmt.Errorf("read what the run left: %w", err)
	}
	var left contract.RunFiles
	if err := json.Unmarshal(data, &left); err != nil {
		return fmt.Errorf("decode what the run left: %w", err)
	}
	files := map[string][]byte{}
	for name, text := range left.Files {
		files[name] = []byte(text)
	}
	if err := state.Keep(ctx, s.store, left.Run, files); err != nil {
		return fmt.Errorf("store run %s: %w", left.Run, err)
	}
	return s.under(ctx, left.Run, func(ctx context.Context, w *state.Work) error {
		if err := state.PutLatest(ctx, w.Store, w.Generation, left.Run); err != nil {
			return fmt.Errorf("note that run %s is the last: %w", left.Run, err)
		}
		if left.Runtime == nil {
			return nil
		}
		if err := state.PutRuntime(ctx, w.Store, w.Generation, *left.Runtime); err != nil {
			return fmt.Errorf("store the runtime state: %w", err)
		}
		return nil
	})
}

// report copies the directory of a run, or of the last one, completes it by everything that is made
// from the record and the logs, and returns the run's id. That happens here because the logs are here, and now because it then costs no run anything.
func (s *State) report(ctx context.Context, out, run string) (string, error) {
	live, err := s.liveRun(ctx)
	if err != nil {
		return "", err
	}
	run, err = state.Report(ctx, s.store, run, out)
	if errors.Is(err, state.ErrNoRun) {
		return "", &fault.Fault{Code: contract.CodeNotThere, Class: fault.Usage, Err: err}
	}
	if err != nil {
		return "", err
	}
	return run, state.Damaged(s.store, run, report.Render(out, run, run == live))
}

// kubeconfig is the administrator's access to the cluster; empty if there is none.
func (s *State) kubeconfig(ctx context.Context) ([]byte, error) {
	text, err := s.backend.Kubeconfig(ctx, s.store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return text, nil
}

// liveRun is the run that holds the deployment's lock, or "". Call it before you read records: a run
// writes its end before it releases the lock, so without an end it was killed or is this one.
func (s *State) liveRun(ctx context.Context) (string, error) {
	holder, err := s.lock(io.Discard, 0).Live(ctx)
	if err != nil || holder == nil {
		return "", err
	}
	return holder.Holder.Run, nil
}

// completed is the record of a run, of which data is what it wrote itself; nil for
// one that was killed before that. live is the run that goes on.
func (s *State) completed(ctx context.Context, run, live string, data []byte) (r *report.Run, err error) {
	if data != nil {
		if r, err = state.Decode(s.store, run, data); err != nil || r.Outcome != report.Running {
			return r, err
		}
	}
	// What it left out is in the results of its steps.
	dir, err := os.MkdirTemp("", "slipway-run-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied := filepath.Join(dir, run)
	if _, err := state.Report(ctx, s.store, run, copied); err != nil {
		return nil, fmt.Errorf("read run %s: %w", run, err)
	}
	r, err = report.Load(copied, run, run == live)
	return r, state.Damaged(s.store, run, err)
}

// last is the record of the last run, up to run, that says how the deployment is: neither tests nor a
// refused run, unless there is no other. It also returns the last run besides tests, if that was refused.
func (s *State) last(ctx context.Context, run string) (*report.Run, *contract.Refusal, error) {
	live, err := s.liveRun(ctx)
	if err != nil {
		return nil, nil, err
	}
	data, err := state.File(ctx, s.store, run, report.RecordFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read run %s: %w", run, err)
	}
	record, err := s.completed(ctx, run, live, data)
	if errors.Is(err, state.ErrNoRun) {
		return nil, nil, s.store.Damaged("latest/", fmt.Errorf("it names run %s, of which nothing is stored", run))
	}
	if err != nil {
		return nil, nil, err
	}
	var first *report.Run // that was refused, going back
	var refused *contract.Refusal
	says := func(r *report.Run) bool {
		if r.Workflow == config.Test {
			return false
		}
		why := contract.RefusalOf(r)
		if why != nil && first == nil {
			first, refused = r, why
		}
		return why == nil
	}
	if says(record) {
		return record, nil, nil
	}
	ids, err := state.Runs(ctx, s.store)
	if err != nil {
		return nil, nil, fmt.Errorf("list the runs: %w", err)
	}
	for _, id := range slices.Backward(ids) {
		if id >= run { // ids sort by time
			continue
		}
		earlier, problem, err := s.record(ctx, id, live)
		if err != nil {
			return nil, nil, err
		}
		if problem == "" && earlier != nil && says(earlier) {
			return earlier, refused, nil
		}
	}
	return first, refused, nil
}

func (s *State) stored(ctx context.Context) (*contract.Stored, error) {
	out := &contract.Stored{}
	run, err := state.Latest(ctx, s.store)
	switch {
	case errors.Is(err, state.ErrNoRun):
	case err != nil:
		return nil, fmt.Errorf("find the last run: %w", err)
	default:
		if out.Record, out.Refused, err = s.last(ctx, run); err != nil {
			return nil, err
		}
	}
	if out.Waits, err = s.waits(out.Record); err != nil {
		return nil, err
	}
	runtime, err := s.runtime(ctx)
	if err != nil {
		return nil, err
	}
	out.Platform = runtime.Platform
	if out.Cluster, err = s.backend.HasKubeconfig(ctx, s.store); err != nil {
		return nil, fmt.Errorf("look for the cluster's credentials: %w", err)
	}
	if out.Lost, err = s.backend.ClusterLost(ctx, s.store); err != nil {
		return nil, err
	}
	identity, err := state.Identity(ctx, s.store)
	if err != nil {
		return nil, err
	}
	if identity != nil {
		out.ID = identity.ID
	}
	if !out.Cluster { // of one that was there already the state has no credentials
		cluster, err := state.ClusterOf(ctx, s.store)
		if err != nil {
			return nil, err
		}
		out.Cluster = cluster != nil
	}
	return out, nil
}

// waits are what the steps of a run wait for, if they run, and on this engine.
func (s *State) waits(record *report.Run) ([]contract.Wait, error) {
	if record == nil || record.Outcome != report.Running {
		return nil, nil
	}
	var out []contract.Wait
	for _, r := range record.Steps {
		if r.Status != pipeline.Running {
			continue
		}
		text, err := bounded.File(filepath.Join(s.backend.Volume, "runs", record.ID, "steps", r.Stage+"."+r.Step, contract.WaitsFile), bounded.Generated)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var waits []contract.Wait
		if err == nil {
			err = json.Unmarshal(text, &waits)
		}
		if err != nil {
			return nil, fmt.Errorf("read what %s waits for: %w", r.ID(), err)
		}
		out = append(out, waits...)
	}
	return out, nil
}
