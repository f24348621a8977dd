package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// The environment of the stand-in.
const (
	standInState = "SLIPWAY_TEST_STAND_IN" // directory of the deployment's state
	standInFlaw  = "SLIPWAY_TEST_FLAW"     // what it does wrong: "forgets", "repeats"
)

// TestMain makes this program stand in for Slipway's where it is called by that name: it installs
// nothing, and keeps records of it as Slipway does.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "slipway" {
		os.Exit(m.Run())
	}
	code, err := standIn(context.Background(), os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func standIn(ctx context.Context, command string, args []string) (code int, err error) {
	dir := os.Getenv(standInState)
	s, err := store.Open(ctx, "file://"+dir, store.Options{})
	if err != nil {
		return 1, err
	}
	latest, _ := os.ReadFile(filepath.Join(dir, "latest-run")) // there need not be one
	switch command {
	case "destroy":
		return 0, underLock(ctx, s, command, func(string, int64) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "journal")), os.RemoveAll(filepath.Join(dir, "cluster")), os.RemoveAll(filepath.Join(dir, "latest-run")))
		})
	case "install":
		if err := underLock(ctx, s, command, func(run string, generation int64) error { return standInInstall(ctx, dir, s, run, generation) }); err != nil {
			fmt.Printf("\nerror RUN-001: %v\n", err)
			return 4, nil
		}
		return 0, nil
	case "report":
		if len(latest) == 0 {
			return 2, errors.New("error DEP-001: not installed")
		}
		out := args[slices.Index(args, "--out")+1]
		return 0, errors.Join(os.CopyFS(out, os.DirFS(filepath.Join(dir, "runs", string(latest)))), os.WriteFile(filepath.Join(out, "state.yaml"), nil, 0o600))
	case "toolchain":
		args = args[slices.Index(args, "--")+1:]
		if !slices.Contains(args, facts.Script) {
			args[2] = strings.Replace(args[2], contract.StateDir, dir, 1)
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			return 0, cmd.Run()
		}
		var items []map[string]any
		files, err := os.ReadDir(filepath.Join(dir, "cluster"))
		for _, f := range files {
			items = append(items, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": f.Name()}})
		}
		return 0, errors.Join(err, json.NewEncoder(os.Stdout).Encode(map[string]any{"items": items}))
	}
	return 2, fmt.Errorf("what is %s", command)
}

// underLock takes the lock over at once: of a holder that was killed nothing is left.
func underLock(ctx context.Context, s *store.Store, workflow string, work func(run string, generation int64) error) error {
	run := report.NewID(time.Now())
	l := lock.New(s, lock.Options{Gone: func(lock.Holder) (func(), bool) { return func() {}, true }})
	_, lease, err := l.Acquire(ctx, lock.Holder{User: "u", Host: "h", Run: run, Workflow: workflow})
	if err != nil {
		return err
	}
	held, err := l.Current(ctx)
	if err == nil {
		err = work(run, held.Generation)
	}
	return errors.Join(err, lease.Release(ctx))
}

// standInSteps are the steps of an install, all of stage infrastructure; each takes as long as step.
var standInSteps = []string{"terraform", "cluster", "storage", "addons"}

const standInStep = 100 * time.Millisecond

func standInInstall(ctx context.Context, dir string, s *store.Store, run string, generation int64) error {
	flaw, ledger := os.Getenv(standInFlaw), journal.On(s, "n").Under(generation, s)
	record := &report.Run{ID: run, Workflow: "install", Platform: report.Platform{Name: "p", Version: "1"}, Started: time.Now()}
	var results []pipeline.Result
	keep := func(err error) error {
		record.Finish(results, err, time.Now())
		text, encErr := record.Encode()
		runDir := filepath.Join(dir, "runs", run)
		whole := func(file string, text []byte) error { // or it is killed in the middle
			written := filepath.Join(dir, "new")
			return errors.Join(os.WriteFile(written, text, 0o600), os.Rename(written, file))
		}
		return errors.Join(encErr, os.MkdirAll(runDir, 0o700), whole(filepath.Join(runDir, report.RecordFile), text),
			whole(filepath.Join(dir, "latest-run"), []byte(run)))
	}
	if err := keep(nil); err != nil {
		return err
	}
	fmt.Println("infrastructure/preflight: succeeded after 0.1s")
	for _, step := range standInSteps {
		id := "infrastructure/" + step
		fmt.Println(id + ": running")
		last, err := ledger.Last(ctx, "infrastructure", step)
		status, began := pipeline.Reused, time.Now()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if last.Status != journal.Succeeded || flaw == "repeats" {
			status = pipeline.Succeeded
			a, err := ledger.Begin(ctx, run, "infrastructure", step, journal.Digests{})
			if err != nil {
				return err
			}
			time.Sleep(standInStep)
			made := filepath.Join(dir, "cluster", step)
			if err := errors.Join(os.MkdirAll(filepath.Dir(made), 0o700), os.WriteFile(made, nil, 0o600)); err != nil {
				return err
			}
			if flaw == "forgets" && generation > 3 && step == "storage" { // not in the reference
				a.Status = journal.Succeeded
			} else if err := ledger.End(ctx, a, json.RawMessage("{}"), nil); err != nil {
				return err
			}
		}
		stepDir := filepath.Join(dir, "runs", run, "steps/infrastructure."+step)
		if err := errors.Join(os.MkdirAll(stepDir, 0o700), os.WriteFile(filepath.Join(stepDir, "result.json"), []byte(`{"status":"`+string(status)+`"}`), 0o600),
			os.WriteFile(filepath.Join(stepDir, "log.txt"), nil, 0o600)); err != nil {
			return err
		}
		results = append(results, pipeline.Result{Key: pipeline.Key{Stage: "infrastructure", Name: step}, Status: status, Started: began, Finished: time.Now()})
		fmt.Printf("%s: %s after %s\n", id, status, report.Took(time.Since(began)))
		if err := keep(nil); err != nil {
			return err
		}
	}
	fmt.Printf("install of n: succeeded in 1s, run %s\n", run)
	return nil
}
