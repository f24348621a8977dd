package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/stages/contract"
)

// copyState prints what of a deployment's state is of a generation, and the attempts of its runs
// since a moment, in seconds since 1970: as an archive, and that as text.
const copyState = `cd ` + contract.StateDir + `
find . -type f '(' -path './lock/*' -o -path './journal/*' -o -path './latest/*' -o -path './state/*' -o -path './terraform/*' -o \
	-path './runs/*/attempt-*.json' -newermt "@$1" ')' -print0 | tar --null --files-from - --create --gzip | base64`

// state is a directory with what the deployment's state knows of its runs since a moment, until
// done is called.
func (d *deployment) state(ctx context.Context, since time.Time) (dir string, done func(), err error) {
	if d.bucket != nil {
		return d.bucket.below(d.Name), func() {}, nil
	}
	text, err := slipway.Output(d.command(ctx, "toolchain", "--", "sh", "-ceu", copyState, "sh", strconv.FormatInt(since.Unix(), 10)))
	if err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp("", "slipway-chaos-records-"); err != nil {
		return "", nil, fmt.Errorf("make a directory for the records: %w", err)
	}
	done = func() { _ = os.RemoveAll(dir) }
	if err := unpack(ctx, text, dir); err != nil {
		done()
		return "", nil, err
	}
	return dir, done, nil
}

// unpack unpacks what copyState has printed.
func unpack(ctx context.Context, text []byte, dir string) error {
	tar := exec.CommandContext(ctx, "tar", "--extract", "--gzip", "--no-same-owner", "--directory", dir)
	tar.Stdin = base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text))
	if out, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack the deployment's records: %w: %s", err, out)
	}
	return nil
}

// events are what the deployment's records tell since its last removal, which was after a moment.
func (d *deployment) events(ctx context.Context, since time.Time, said ...history.Said) ([]history.Event, error) {
	dir, done, err := d.state(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("read the deployment's records: %w", err)
	}
	defer done()
	return history.Records(ctx, dir, d.Name, said...)
}

// journaled are the steps that the journal has of an install.
func (d *deployment) journaled(ctx context.Context, since time.Time) (map[string]bool, error) {
	events, err := d.events(ctx, since)
	steps := map[string]bool{}
	for _, e := range events {
		if e.Op == history.Found {
			steps[e.Step] = true
		}
	}
	if err == nil && len(steps) == 0 {
		err = errors.New("the records tell of no step")
	}
	return steps, err
}

// history checks what the records tell of the round's installs, and notes how much that is.
func (r *round) history(ctx context.Context, s *seen) error {
	var acknowledged []history.Said
	for _, one := range r.said {
		acknowledged = append(acknowledged, one.acknowledged(r.reference.journaled))
	}
	events, err := r.events(ctx, r.began, acknowledged...)
	if err != nil {
		return err
	}
	for _, e := range events {
		switch e.Op {
		case history.Take:
			s.runs++
		case history.Begin:
			s.attempts++
		}
	}
	if s.runs == 0 || s.attempts == 0 {
		err = errors.New("the records tell of no install")
	}
	errs := []error{err}
	for _, a := range history.Check(events) {
		errs = append(errs, fmt.Errorf("the records are not as they must be: %s", a))
	}
	return errors.Join(errs...)
}
