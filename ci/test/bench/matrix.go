package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// matrix is `upgrade-matrix` with two cells, each with an install, an upgrade, a report and
// a destroy.
type matrix struct {
	program
	name     string // of its deployments; a matrix's is shorter than others
	parallel int    // how many cells run at the same time

	results string // folder with those of the last run, until that is removed
}

func (m *matrix) args() []string {
	return []string{"--from", "1.0.0", "--to", "1.1.0", "--style", "graceful,in-place", "--parallel", strconv.Itoa(m.parallel), "--out", m.results}
}

// Install runs the matrix.
func (m *matrix) Install(ctx context.Context, _ string, _ kind) (err error) {
	if m.results, err = os.MkdirTemp("", "bench-"); err != nil {
		return fmt.Errorf("make a folder for results: %w", err)
	}
	return slipway.Run(m.command(ctx, "upgrade-matrix", m.name, m.args()...), m.log)
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
