package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/state"
)

// stateCommand is `slipway state`, which the conductor runs in containers that
// have the state volume.
func stateCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	root := set.String("root", stages.StateDir, "the state volume")
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
			return errUsage{errors.New("give: keep FILE, show, report DIR [RUN], purge, hold, unlock FILE, or runs FILE [RUN]")}
		}
		switch rest := args[1:]; {
		case args[0] == "keep" && len(rest) == 1:
			return keepState(*root, rest[0])
		case args[0] == "show" && len(rest) == 0:
			stored, err := showState(*root)
			if err != nil {
				return err
			}
			return printJSON(io.out, stored)
		case args[0] == "report" && (len(rest) == 1 || len(rest) == 2):
			return reportState(*root, append(rest, "")[1], rest[0])
		case args[0] == "purge" && len(rest) == 0:
			return state.Purge(*root)
		case args[0] == "hold" && len(rest) == 0:
			return holdLock(ctx, io, *root, who, *patience)
		case args[0] == "unlock" && len(rest) == 1:
			l, err := openLock(ctx, *root, io.err)
			if err != nil {
				return err
			}
			broken, err := l.Unlock(ctx, who, *reason, *force)
			if err != nil {
				return err
			}
			return writeJSON(rest[0], broken)
		case args[0] == "runs" && (len(rest) == 1 || len(rest) == 2):
			answer, err := storedRuns(ctx, *root, *deployment, append(rest, "")[1])
			if err != nil {
				return err
			}
			return writeJSON(rest[0], answer)
		}
		return errUsage{fmt.Errorf("there is no state command %q", args)}
	}
}

// keepState writes what a run left to be kept.
func keepState(root, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what is to be kept: %w", err)
	}
	var kept stages.Kept
	if err := json.Unmarshal(data, &kept); err != nil {
		return fmt.Errorf("decode what is to be kept: %w", err)
	}
	files := map[string][]byte{}
	for name, text := range kept.Files {
		files[name] = []byte(text)
	}
	if err := state.Keep(root, kept.Run, files); err != nil {
		return fmt.Errorf("keep run %s: %w", kept.Run, err)
	}
	if kept.Runtime == "" {
		return nil
	}
	if err := state.KeepRuntime(root, []byte(kept.Runtime)); err != nil {
		return fmt.Errorf("keep the runtime state: %w", err)
	}
	return nil
}

// reportState copies a run's directory and completes it by everything that is
// made from the record and the logs. That happens here because the logs are here,
// and now because it then costs no run anything.
func reportState(root, run, out string) error {
	run, err := state.Report(root, run, out)
	if errors.Is(err, state.ErrNoRun) {
		return &fault.Fault{Code: stages.CodeNotThere, Class: fault.Usage, Err: err}
	}
	if err != nil {
		return err
	}
	if err := report.Render(out, run); err != nil {
		return err
	}
	return os.WriteFile(out+".id", []byte(run), 0o644)
}

// showState reads what is known of the deployment.
func showState(root string) (*stages.Stored, error) {
	out := &stages.Stored{}
	run, err := state.Latest(root)
	switch {
	case errors.Is(err, state.ErrNoRun):
	case err != nil:
		return nil, fmt.Errorf("find the last run: %w", err)
	default:
		data, err := os.ReadFile(filepath.Join(root, "runs", run, report.RecordFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		// A run that was killed left its steps but no record of its own.
		out.Record = &report.Run{ID: run, Outcome: report.Running}
		if err == nil {
			if out.Record, err = report.Decode(data); err != nil {
				return nil, err
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "state.yaml"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read the runtime state: %w", err)
	default:
		out.Runtime = &stages.RuntimeState{}
		if err := yaml.UnmarshalStrict(data, out.Runtime); err != nil {
			return nil, fmt.Errorf("decode the runtime state: %w", err)
		}
	}
	_, err = os.Stat(filepath.Join(root, "secrets", "kubeconfig"))
	out.Cluster = err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for the cluster's credentials: %w", err)
	}
	return out, nil
}
