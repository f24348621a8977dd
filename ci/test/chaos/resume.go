package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
)

// lastBreath is how long an install waits for one that was disturbed to give up the lock.
const lastBreath = "1m"

// resume installs again and returns how many steps were reused. One that had
// succeeded and ran again is an error, unless it says that its result did not
// hold any more.
func (r *round) resume(ctx context.Context) (int, error) {
	before, err := r.succeeded(ctx, r.log+"-interrupted")
	if err != nil {
		return 0, err
	}
	if err := r.installs(r.log+".log", r.complete(ctx, "--lock-timeout", lastBreath)); err != nil {
		return 0, fmt.Errorf("the install does not continue: %w", err)
	}
	dir := r.log + "-continued"
	rec, err := r.report(ctx, dir)
	if err != nil {
		return 0, err
	}
	reused := 0
	var errs []error
	for _, s := range rec.Steps {
		switch {
		case !before[s.ID()]:
		case s.Status == pipeline.Reused:
			reused++
		default:
			log, err := os.ReadFile(filepath.Join(dir, "steps", s.Stage+"."+s.Step, "log.txt"))
			if err != nil {
				errs = append(errs, err)
			} else if !strings.Contains(string(log), notHeld) {
				errs = append(errs, fmt.Errorf("%s had succeeded and is %s the second time", s.ID(), s.Status))
			}
		}
	}
	return reused, errors.Join(errs...)
}

// notHeld is what a step's log says of an earlier result that did not verify.
const notHeld = "does not hold any more"

// succeeded are the steps of the last run that left a success behind; that run
// may have had no time to leave anything.
func (r *round) succeeded(ctx context.Context, dir string) (map[string]bool, error) {
	out := map[string]bool{}
	err := r.run(r.log+".log", r.command(ctx, "report", "--out", dir))
	if exit, ok := errors.AsType[*slipway.ExitError](err); ok && exit.Status == 2 && strings.Contains(exit.Tail, "DEP-001") {
		return out, nil // killed before it had written anything
	}
	if err != nil {
		return nil, err
	}
	last, err := record(dir)
	if err != nil {
		return nil, err
	}
	if last.Workflow == config.Destroy { // the install was killed before it had a record of its own
		return out, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "steps", "*", "result.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a step's result: %w", err)
		}
		var result struct {
			Status string `json:"status"`
		}
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		id := strings.Replace(filepath.Base(filepath.Dir(file)), ".", "/", 1)
		out[id] = result.Status == "succeeded" || result.Status == "reused"
	}
	return out, nil
}
