// Package matrix is slipway upgrade-matrix: it runs many upgrades, each a cell with its own deployment, and shows the results.
package matrix

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// The faults that a cell can be given.
const (
	NoFault        = "none"
	KillAtEachStep = "kill-at-each-step" // the upgrade is killed at the first start of each step, then continued
)

// Cell is one upgrade.
type Cell struct {
	From   string `json:"from"` // version of a release, or the directory of one
	To     string `json:"to"`   // as From
	Scale  int    `json:"scale"`
	Style  string `json:"style"`
	Faults string `json:"faults"` // NoFault or KillAtEachStep
}

func (c Cell) String() string {
	text := fmt.Sprintf("%s to %s, scale %d, %s", c.From, c.To, c.Scale, c.Style)
	if c.Faults != NoFault {
		text += ", " + c.Faults
	}
	return text
}

// Deployment is the cell's deployment. inputs, a digest, makes it differ for another program or release.
func (c Cell) Deployment(inputs string) string {
	return fmt.Sprintf("mx-%.6x", sha256.Sum256([]byte(c.String()+inputs)))
}

// Axes are what the cells of a matrix are made of. None is empty.
type Axes struct {
	From, To []string
	Scales   []int
	Styles   []string
	Faults   []string
}

// Cells are all combinations, but for those from a release to itself.
func (a Axes) Cells() []Cell {
	var out []Cell
	for _, from := range a.From {
		for _, to := range a.To {
			if from == to {
				continue
			}
			for _, scale := range a.Scales {
				for _, style := range a.Styles {
					for _, faults := range a.Faults {
						c := Cell{From: from, To: to, Scale: scale, Style: style, Faults: faults}
						if !slices.Contains(out, c) {
							out = append(out, c)
						}
					}
				}
			}
		}
	}
	return out
}

// Shard is a part of a matrix: the Number-th of Of. The zero value is the whole.
type Shard struct{ Number, Of int }

// ParseShard reads "2/3".
func ParseShard(text string) (s Shard, err error) {
	_, err = fmt.Sscanf(text, "%d/%d", &s.Number, &s.Of)
	if err != nil || text != fmt.Sprintf("%d/%d", s.Number, s.Of) || s.Number < 1 || s.Number > s.Of {
		return Shard{}, fmt.Errorf("%q is no shard; give i/n, such as 1/3, with i from 1 to n", text)
	}
	return s, nil
}

// Cells returns those of the shard: each is in one.
func (s Shard) Cells(all []Cell) []Cell {
	if s.Of == 0 {
		return all
	}
	var out []Cell
	for i, c := range all {
		if i%s.Of == s.Number-1 {
			out = append(out, c)
		}
	}
	return out
}

// Run calls do with each cell, so many at a time, and returns the results in order. After ctx ends, no cell starts.
func Run(ctx context.Context, cells []Cell, parallel int, do func(context.Context, Cell) Result) []Result {
	out := make([]Result, len(cells))
	var running errgroup.Group
	running.SetLimit(parallel)
	for i, c := range cells {
		running.Go(func() error {
			out[i] = Result{Cell: c, Outcome: Cancelled}
			if ctx.Err() == nil {
				out[i] = do(ctx, c)
			}
			return nil
		})
	}
	_ = running.Wait() // no cell returns an error
	return out
}
