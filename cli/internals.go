package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/state"
)

// stateCommand is `slipway state`, which the conductor runs in containers that
// have the state volume, and the address of the store if that is another one.
func stateCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	root := set.String("root", contract.StateDir, "the state volume")
	var who lock.Holder
	set.StringVar(&who.User, "user", "", "hold, unlock: who does it")
	set.StringVar(&who.Host, "host", "", "hold, unlock: on which machine")
	set.StringVar(&who.Run, "run", "", "hold: id of the run")
	set.StringVar(&who.Workflow, "workflow", "", "hold: of the run")
	deployment := set.String("deployment", "", "runs: name of the deployment")
	patience := set.Duration("patience", lockTimeout, "hold: how long to wait for a holder that is alive")
	reason := set.String("reason", "", "unlock: why")
	force := set.Bool("force", false, "unlock: also when the holder is alive")
	return func(ctx context.Context, io streams, args []string) (err error) {
		defer func() { tellFault(io.err, err) }()
		if len(args) == 0 {
			return errUsage{errors.New("give: keep FILE, show FILE, report DIR [RUN], kubeconfig FILE, purge, hold, unlock FILE, or runs FILE [RUN]")}
		}
		place := state.At(*root, os.Getenv, stores())
		s, err := place.Open(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		switch rest := args[1:]; {
		case args[0] == "keep" && len(rest) == 1:
			return keepState(ctx, s, rest[0])
		case args[0] == "show" && len(rest) == 1:
			stored, err := showState(ctx, place, s)
			if err != nil {
				return err
			}
			return writeJSON(rest[0], stored)
		case args[0] == "report" && (len(rest) == 1 || len(rest) == 2):
			return reportState(ctx, s, append(rest, "")[1], rest[0])
		case args[0] == "kubeconfig" && len(rest) == 1:
			return giveKubeconfig(ctx, place, s, rest[0])
		case args[0] == "purge" && len(rest) == 0:
			return state.Purge(ctx, place, s)
		case args[0] == "hold" && len(rest) == 0:
			return holdLock(ctx, io, s, who, *patience)
		case args[0] == "unlock" && len(rest) == 1:
			broken, err := openLock(s, io.err).Unlock(ctx, who, *reason, *force)
			if err != nil {
				return err
			}
			return writeJSON(rest[0], broken)
		case args[0] == "runs" && (len(rest) == 1 || len(rest) == 2):
			answer, err := storedRuns(ctx, s, *deployment, append(rest, "")[1])
			if err != nil {
				return err
			}
			return writeJSON(rest[0], answer)
		}
		return errUsage{fmt.Errorf("there is no state command %q", args)}
	}
}

// keepState writes what a run left to be kept.
func keepState(ctx context.Context, s *store.Store, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what is to be kept: %w", err)
	}
	var kept contract.Kept
	if err := json.Unmarshal(data, &kept); err != nil {
		return fmt.Errorf("decode what is to be kept: %w", err)
	}
	files := map[string][]byte{}
	for name, text := range kept.Files {
		files[name] = []byte(text)
	}
	if err := state.Keep(ctx, s, kept.Run, files); err != nil {
		return fmt.Errorf("keep run %s: %w", kept.Run, err)
	}
	if kept.Runtime == "" {
		return nil
	}
	if err := state.KeepRuntime(ctx, s, []byte(kept.Runtime)); err != nil {
		return fmt.Errorf("keep the runtime state: %w", err)
	}
	return nil
}

// reportState copies a run's directory and completes it by everything that is
// made from the record and the logs. That happens here because the logs are here,
// and now because it then costs no run anything.
func reportState(ctx context.Context, s *store.Store, run, out string) error {
	live, err := liveRun(ctx, s)
	if err != nil {
		return err
	}
	run, err = state.Report(ctx, s, run, out)
	if errors.Is(err, state.ErrNoRun) {
		return &fault.Fault{Code: conductor.CodeNotThere, Class: fault.Usage, Err: err}
	}
	if err != nil {
		return err
	}
	if err := report.Render(out, run, run == live); err != nil {
		return err
	}
	return os.WriteFile(out+".id", []byte(run), 0o644)
}

// giveKubeconfig writes the administrator's access to the cluster to a file, if
// there is one.
func giveKubeconfig(ctx context.Context, place state.Place, s *store.Store, file string) error {
	text, err := place.Kubeconfig(ctx, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	return os.WriteFile(file, text, 0o600)
}

// liveRun is the id of the run that works on the deployment; empty when there is
// none. It comes before the run's record is read: a run writes its end before it
// gives the lock up, so that one without an end that is not this one is gone.
func liveRun(ctx context.Context, s *store.Store) (string, error) {
	holder, err := openLock(s, io.Discard).Live(ctx)
	if err != nil || holder == nil {
		return "", err
	}
	return holder.Holder.Run, nil
}

// completed is the record of a run, of which data is what it wrote itself; nil for
// one that was killed before that. live is the run that goes on.
func completed(ctx context.Context, s *store.Store, run, live string, data []byte) (r *report.Run, err error) {
	if data != nil {
		if r, err = report.Decode(data); err != nil || r.Outcome != report.Running {
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
	if _, err := state.Report(ctx, s, run, copied); err != nil {
		return nil, fmt.Errorf("read run %s: %w", run, err)
	}
	return report.Load(copied, run, run == live)
}

// showState reads what is known of the deployment.
func showState(ctx context.Context, place state.Place, s *store.Store) (*contract.Stored, error) {
	out := &contract.Stored{}
	run, err := state.Latest(ctx, s)
	switch {
	case errors.Is(err, state.ErrNoRun):
	case err != nil:
		return nil, fmt.Errorf("find the last run: %w", err)
	default:
		live, err := liveRun(ctx, s)
		if err != nil {
			return nil, err
		}
		data, err := state.File(ctx, s, run, report.RecordFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		if out.Record, err = completed(ctx, s, run, live, data); err != nil {
			return nil, err
		}
	}
	data, err := state.Runtime(ctx, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read the runtime state: %w", err)
	default:
		out.Runtime = &contract.RuntimeState{}
		if err := yaml.UnmarshalStrict(data, out.Runtime); err != nil {
			return nil, fmt.Errorf("decode the runtime state: %w", err)
		}
	}
	if out.Here, out.Cluster, err = place.HasKubeconfig(ctx, s); err != nil {
		return nil, fmt.Errorf("look for the cluster's credentials: %w", err)
	}
	return out, nil
}
