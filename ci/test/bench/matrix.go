package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// matrix is `upgrade-matrix` with two cells, each with an install, an upgrade, a report and
// a destroy.
type matrix struct {
	program
	name     string // of its deployments; a matrix's is shorter than others
	parallel int    // how many cells run at the same time

	results string // folder with those of the last run, until that is removed
	parts   []part // of that run
}

// parts are told by an installer that knows the times of parts of the last thing that it did.
type parts interface{ Parts() []part }

type part struct {
	kind kind
	took time.Duration
}

// Parts are the first two cells of the last run, in a matrix whose cells do not disturb each
// other.
func (m *matrix) Parts() []part { return m.parts }

func (m *matrix) args() []string {
	return []string{"--from", "1.0.0", "--to", "1.1.0", "--style", "graceful,in-place", "--parallel", strconv.Itoa(m.parallel), "--out", m.results}
}

// Install runs the matrix.
func (m *matrix) Install(ctx context.Context, _ string, _ kind) (err error) {
	if m.results, err = os.MkdirTemp("", "bench-"); err != nil {
		return fmt.Errorf("make a folder for results: %w", err)
	}
	m.parts = nil
	if err := slipway.Run(m.command(ctx, "upgrade-matrix", m.name, m.args()...), m.log); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(m.results, "matrix.json"))
	if err != nil {
		return fmt.Errorf("read the results of the matrix: %w", err)
	}
	took, err := cellTimes(text)
	if err == nil && m.parallel == 1 {
		m.parts = []part{{cell1, took[0]}, {cell2, took[1]}}
	}
	return err
}

// Remove takes away what an interrupted matrix has left; one that ends removes its deployments
// by itself.
func (m *matrix) Remove(ctx context.Context, _ string) error {
	names := []string{m.name} // there is none, and looking for it warms the engine
	if m.results != "" {
		left, err := os.ReadDir(m.results)
		if err != nil {
			return fmt.Errorf("read the results of the matrix: %w", err)
		}
		for _, entry := range left {
			if entry.IsDir() { // its log is in a folder with its name
				names = append(names, entry.Name())
			}
		}
	}
	for _, name := range names {
		if err := m.program.Remove(ctx, name); err != nil {
			return err
		}
	}
	err := os.RemoveAll(m.results)
	m.results = ""
	return err
}

// cell is one of a matrix.json.
type cell struct {
	Began  time.Time
	Phases []struct{ Nanoseconds time.Duration }
}

// cellTimes are how long the two cells in a matrix.json took, in the order in which they
// began.
func cellTimes(text []byte) ([]time.Duration, error) {
	var all struct{ Cells []cell }
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the results of the matrix: %w", err)
	}
	if len(all.Cells) != 2 {
		return nil, fmt.Errorf("the matrix has %d cells, not 2", len(all.Cells))
	}
	slices.SortFunc(all.Cells, func(a, b cell) int { return a.Began.Compare(b.Began) })
	out := make([]time.Duration, len(all.Cells))
	for i, c := range all.Cells {
		for _, p := range c.Phases {
			out[i] += p.Nanoseconds
		}
	}
	return out, nil
}
