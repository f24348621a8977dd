package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// The commands of a cell by which its result is read.
const (
	phaseInstall = "install"
	phaseUpgrade = "upgrade"
)

// all runs the cell's commands up to the first that fails. A failed deployment stays, stopped.
func (c *cell) all(ctx context.Context) {
	if !c.command(ctx, "clear", "destroy", "--yes", "--ignore-not-found") ||
		!c.command(ctx, phaseInstall, "install", slices.Concat([]string{"--yes"}, releaseIn(c.what.From), c.Keep)...) ||
		!c.test(ctx, platform.DeployApps, c.what.From) ||
		!c.upgrade(ctx) ||
		!c.command(ctx, "report", "report", "--out", filepath.Join(c.dir, reportDir)) ||
		!c.check(ctx) ||
		!c.command(ctx, "destroy", "destroy", "--yes") {
		c.leave(ctx)
	}
}

// releaseIn are the flags for the directory of a release; none for a version.
func releaseIn(release string) []string {
	if IsDir(release) {
		return []string{"--platform", release}
	}
	return nil
}

// test runs a suite of the installed release. An empty suite passes.
func (c *cell) test(ctx context.Context, suite, release string) bool {
	p, out, err := c.suite(ctx, suite, release)
	return c.passed(ctx, p, out, err)
}

func (c *cell) suite(ctx context.Context, suite, release string) (Phase, console.Result, error) {
	p := Phase{Name: suite}
	out, err := c.process(ctx, &p, nil, "test", append([]string{suite}, releaseIn(release)...))
	if out.Code == stages.CodeNoTests {
		p.Exit = 0
	}
	return p, out, err
}

// check checks the workloads and counts, then runs the release's tests.
func (c *cell) check(ctx context.Context) bool {
	p, out, err := c.suite(ctx, platform.CheckApps, c.what.To)
	if err == nil && p.Exit == 0 && out.Run == nil && out.Code == "" { // its counts decide
		err = errors.New("the command left no result")
	}
	c.result.Counts = counts(out.Run)
	ok := c.passed(ctx, p, out, err)
	if lost := c.lost(); lost != "" && ctx.Err() == nil { // more precise than a failed check
		c.fails(lost)
		c.result.Code = string(CodeLost)
		return false
	}
	return ok && c.test(ctx, platform.DefaultSuite, c.what.To)
}

// leave packs the failed run, takes its report, and stops the cluster, unless interrupted twice.
func (c *cell) leave(ctx context.Context) {
	if ctx.Err() == nil {
		c.pack(ctx)
		dir := reportDir
		if c.phase() != phaseInstall && c.phase() != phaseUpgrade { // the upgrade's report stays
			dir = testsDir
		}
		_, _ = c.process(ctx, &Phase{Name: "report"}, nil, "report", []string{"--out", filepath.Join(c.dir, dir)})
	}
	select {
	case <-c.AtOnce:
		return
	default:
	}
	if len(c.Keep) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDelay)
		defer cancel()
		_, _ = c.process(ctx, &Phase{Name: "stop"}, nil, "cluster", []string{"--stop"})
	}
}

func (c *cell) phase() string {
	if n := len(c.result.Phases); n > 0 {
		return c.result.Phases[n-1].Name
	}
	return ""
}

// pack packs the last run.
func (c *cell) pack(ctx context.Context) {
	file := filepath.Join(c.dir, "run"+runpackage.Suffix)
	failed, of := c.phase(), c.what.To
	if failed == phaseInstall || failed == platform.DeployApps {
		of = c.what.From
	}
	p := Phase{Name: "save"}
	if _, err := c.process(ctx, &p, nil, "save", append([]string{"--out", file}, releaseIn(of)...)); err != nil || p.Exit != 0 {
		return
	}
	c.result.Package = file
	if c.reproduced { // else only the whole cell can be
		c.result.Reproduce = "slipway reproduce --package " + fault.Quote(file)
	}
}

// IsDir reports whether a release of a matrix is named by its directory: with a slash in it.
func IsDir(release string) bool { return strings.ContainsAny(release, `/\`) }

func (c *cell) fails(reason string) {
	c.result.Outcome, c.result.Reason = Failed, reason
}

func (c *cell) command(ctx context.Context, phase, name string, args ...string) bool {
	p := Phase{Name: phase}
	out, err := c.process(ctx, &p, nil, name, args)
	return c.passed(ctx, p, out, err)
}

// passed adds a phase, and reports whether it succeeded.
func (c *cell) passed(ctx context.Context, p Phase, out console.Result, err error) bool {
	c.result.Phases = append(c.result.Phases, p)
	c.reproduced = out.Run != nil && slices.ContainsFunc(out.Run.Reproduce, func(s string) bool { return strings.HasPrefix(s, "slipway reproduce ") })
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		c.fails(err.Error())
	case p.Exit != 0:
		c.fails(cmp.Or(redact.OneLine(out.Error), "exit code "+strconv.Itoa(p.Exit)))
		c.result.Code = string(out.Code)
	default:
		return true
	}
	return false
}

// upgrade upgrades the cell. With KillAtEachStep it is killed at the first start of each step, then continued.
func (c *cell) upgrade(ctx context.Context) bool {
	args := slices.Concat([]string{"--to", c.what.To, "--style", c.what.Style, "--lock-timeout", afterKill}, c.Keep)
	if IsDir(c.what.To) {
		args[0] = "--platform"
	}
	p := Phase{Name: phaseUpgrade}
	var killed []string
	var kill func(string) bool
	if c.what.Faults == KillAtEachStep {
		kill = func(step string) bool {
			first := !slices.Contains(killed, step)
			if first {
				killed = append(killed, step)
			}
			return first
		}
	}
	for {
		before := p.Killed
		out, err := c.process(ctx, &p, kill, "upgrade", args)
		switch {
		case err == nil && p.Killed > before && p.Killed <= mostKills && ctx.Err() == nil:
			continue
		case before > 0 && out.Code == platform.CodeSame: // it was killed when all was done
			p.Exit = 0
		}
		return c.passed(ctx, p, out, err)
	}
}

// CodeLost: an upgrade lost acknowledged rows, or requests that it should not disturb.
const CodeLost fault.Code = "MTX-003"

// The counts of workload checks that decide a cell. Without such workloads, its checks and tests decide.
const (
	RowsAcknowledged = "rows-acknowledged" // rows that were acknowledged to those who wrote them
	RowsThere        = "rows-there"        // how many of these there are
	Requests         = "requests"          // requests, from before the upgrade until after it
	RequestsFailed   = "requests-failed"   // how many of these had no proper answer
)

// counts sums the counts of a run's checks; nil: there are none.
func counts(run *report.Run) map[string]int64 {
	if run == nil {
		return nil
	}
	var sum map[string]int64
	for _, s := range run.Steps {
		for name, n := range s.Counts {
			if sum == nil {
				sum = map[string]int64{}
			}
			sum[name] += n
		}
	}
	return sum
}

// lost describes lost rows or requests, or that one count of a pair is unknown; empty: none.
func (c *cell) lost() string {
	r := c.result
	for _, pair := range [][2]string{{RowsAcknowledged, RowsThere}, {Requests, RequestsFailed}} {
		_, one := r.Counts[pair[0]]
		_, other := r.Counts[pair[1]]
		if one != other { // unknown, not zero
			return fmt.Sprintf("the checks have counted only one of %s and %s", pair[0], pair[1])
		}
	}
	if rows, there := r.Counts[RowsAcknowledged], r.Counts[RowsThere]; there < rows {
		return fmt.Sprintf("%d of %d rows that were acknowledged are missing", rows-there, rows)
	}
	failed := r.Counts[RequestsFailed]
	if failed == 0 || c.what.Style != contract.Graceful || c.what.Faults != NoFault {
		return ""
	}
	return fmt.Sprintf("%d of %d requests failed in a graceful upgrade that nothing disturbed", failed, r.Counts[Requests])
}

// Rows is "812 of 812"; "-" without counts.
func (r Result) Rows() string { return r.share(RowsThere, RowsAcknowledged) }

// FailedRequests is like Rows.
func (r Result) FailedRequests() string { return r.share(RequestsFailed, Requests) }

func (r Result) share(part, whole string) string {
	all, counted := r.Counts[whole]
	if !counted {
		return "-"
	}
	return fmt.Sprintf("%d of %d", r.Counts[part], all)
}
