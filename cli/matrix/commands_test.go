//go:build unix

package matrix

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
)

// commandsOf runs cells with a shell script in the place of slipway, in a directory in which
// it can leave files.
func commandsOf(t *testing.T, script string) (m *Commands, dir string) {
	t.Helper()
	dir = t.TempDir()
	program := filepath.Join(dir, "slipway")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncd "+dir+"\necho \"$@\" >>calls\n[ \"$1\" != test ] || printf '{\"run\":{}}' >\"$"+console.EnvResult+"\"\n"+script), 0o755))
	return &Commands{
		Program: program, Given: []string{"--bundle=b"}, Keep: []string{"--keep-cluster"}, Results: Results(filepath.Join(dir, "results")), Say: func(string) {},
		Inputs:        func(Cell) string { return "sha256:1" },
		Configuration: func(c Cell) []byte { return []byte("release: " + c.From) },
	}, dir
}

// calls are the commands that were run, without the flags that all have.
func calls(t *testing.T, dir, deployment string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	require.NoError(t, err)
	own := filepath.Join(dir, "results", deployment)
	out := strings.ReplaceAll(string(text), " --config "+filepath.Join(own, "slipway.yaml")+" --name "+deployment, "")
	out = strings.ReplaceAll(strings.ReplaceAll(out, own, "DIR"), " --bundle=b", "")
	return strings.Split(strings.TrimSpace(out), "\n")
}

var cellOfTest = Cell{From: "1.0.0", To: "1.1.0", Scale: 50, Style: "graceful", Faults: NoFault}

// says makes a script's command end so: with an error, and a run whose steps have counted this, such as
// "rows-there 7, rows-acknowledged 7", and that can be reproduced so.
func says(t *testing.T, code fault.Code, text string, reproduce []string, counted ...string) string {
	t.Helper()
	end := console.Result{Code: code, Error: text, Run: &report.Run{Reproduce: reproduce}}
	for _, all := range counted {
		step := report.Step{Stage: "apps-check", Step: "any", Counts: map[string]int64{}}
		for part := range strings.SplitSeq(all, ", ") {
			name, number, _ := strings.Cut(part, " ")
			n, err := strconv.ParseInt(number, 10, 64)
			require.NoError(t, err)
			step.Counts[name] = n
		}
		end.Run.Steps = append(end.Run.Steps, step)
	}
	made, err := json.Marshal(end)
	require.NoError(t, err)
	return "printf %s '" + string(made) + "' >\"$" + console.EnvResult + "\"\n"
}

func TestTheCommandsOfACell(t *testing.T) {
	m, dir := commandsOf(t, "exit 0")
	r := m.Do(t.Context(), cellOfTest)
	require.Equal(t, Upgraded, r.Outcome, r.Reason)
	require.Equal(t, []string{
		"destroy --yes --ignore-not-found", "install --yes --keep-cluster", "test apps-deploy",
		"upgrade --to 1.1.0 --style graceful --lock-timeout 1m --keep-cluster", "report --out DIR/report",
		"test apps-check", "test full", "destroy --yes",
	}, calls(t, dir, r.Deployment))
	text, err := os.ReadFile(filepath.Join(dir, "results", r.Deployment, "slipway.yaml"))
	require.NoError(t, err)
	require.Equal(t, "release: 1.0.0", string(text))
	require.Equal(t, r, m.Do(t.Context(), cellOfTest), "it is not run again")
	require.Len(t, calls(t, dir, r.Deployment), 8)
	m.Inputs = func(Cell) string { return "sha256:2" }
	require.NotEqual(t, r.Deployment, m.Do(t.Context(), cellOfTest).Deployment)
	require.Len(t, calls(t, dir, r.Deployment), 16, "unless what decides its result has changed")
}

func TestReleasesInDirectories(t *testing.T) {
	m, dir := commandsOf(t, "exit 0")
	c := cellOfTest
	c.From, c.To = "./one", "./two"
	r := m.Do(t.Context(), c)
	require.Subset(t, calls(t, dir, r.Deployment), []string{
		"install --yes --platform ./one --keep-cluster", "test apps-deploy --platform ./one",
		"upgrade --platform ./two --style graceful --lock-timeout 1m --keep-cluster",
		"test apps-check --platform ./two", "test full --platform ./two",
	})
}

func TestACellThatFailsIsLeftAsItIs(t *testing.T) {
	m, dir := commandsOf(t, `test "$1" = upgrade || exit 0
echo "error UPG-002: second" >&2
`+says(t, "CMP-001", "carry out job x/y:\n  it failed", []string{"slipway save --run r", "slipway reproduce --package run.tar.zst"})+"exit 4")
	r := m.Do(t.Context(), cellOfTest)
	require.Equal(t, []any{Failed, "CMP-001", "carry out job x/y: it failed"}, []any{r.Outcome, r.Code, r.Reason})
	require.Equal(t, "upgrade failed: CMP-001 carry out job x/y: it failed", r.Why())
	own := filepath.Join(dir, "results", r.Deployment)
	require.Equal(t, []string{"save --out DIR/run.tar.zst", "report --out DIR/report", "cluster --stop"}, calls(t, dir, r.Deployment)[4:], "and is not destroyed")
	require.Equal(t, []string{filepath.Join(own, "run.tar.zst"), "slipway reproduce --package " + filepath.Join(own, "run.tar.zst")}, []string{r.Package, r.Reproduce})
	log, err := os.ReadFile(filepath.Join(dir, "results", r.Deployment, "upgrade.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "error UPG-002: second\n")
}

// TestAFailedUpgradeIsReproduced only where its own command says that it can be: an install
// does not have every step of it.
func TestAFailedUpgradeIsReproduced(t *testing.T) {
	m, _ := commandsOf(t, `test "$1" = upgrade || exit 0
`+says(t, "BAK-001", "prove the backup: no", []string{"slipway save --run r"})+"exit 4")
	r := m.Do(t.Context(), cellOfTest)
	require.NotEmpty(t, r.Package)
	require.Empty(t, r.Reproduce)
}

// TestAnUpgradeIsKilledAtEachStep that begins, once, until it goes through.
func TestAnUpgradeIsKilledAtEachStep(t *testing.T) {
	c := cellOfTest
	c.Faults = KillAtEachStep
	const steps = `test "$1" = upgrade || exit 0
for step in one two three; do
	new=$(test -e "$step" || echo yes)
	touch "$step"
	echo "stage/$step: running" >&2
	test -z "$new" || exec sleep 60
done
`
	m, dir := commandsOf(t, steps)
	r := m.Do(t.Context(), c)
	require.Equal(t, Upgraded, r.Outcome, r.Reason)
	require.Equal(t, 3, r.Phases[3].Killed)
	require.Len(t, calls(t, dir, r.Deployment), 7+4)

	m, _ = commandsOf(t, steps+says(t, platform.CodeSame, "it is installed already", nil)+"exit 2")
	require.Equal(t, Upgraded, m.Do(t.Context(), c).Outcome, "the last one was killed when all was done")
	m, _ = commandsOf(t, steps+says(t, "UPG-001", "no", nil)+"exit 2")
	r = m.Do(t.Context(), c)
	require.Equal(t, []any{Failed, "UPG-001"}, []any{r.Outcome, r.Code})
}

// TestEachUpgradeOfAPathIsKilled at each of its steps, although both have the same.
func TestEachUpgradeOfAPathIsKilled(t *testing.T) {
	c := cellOfTest
	c.Faults = KillAtEachStep
	m, _ := commandsOf(t, `test "$1" = upgrade || exit 0
step() {
	new=$(test -e "$1" || echo yes)
	touch "$1"
	echo "stage/step: running" >&2
	test -z "$new" || exec sleep 60
}
if test ! -e two; then
	echo "upgrade 1 of 2: to release 1.1.0" >&2
	step one
	echo "upgrade 2 of 2: to release 2.0.0" >&2
fi
step two
`)
	r := m.Do(t.Context(), c)
	require.Equal(t, Upgraded, r.Outcome, r.Reason)
	require.Equal(t, 2, r.Phases[3].Killed)
}

// TestACellIsJudged by what those who used the platform have counted.
func TestACellIsJudged(t *testing.T) {
	counting := func(exit int, counted ...string) string { // a script whose checks count
		var code fault.Code
		text := ""
		if exit != 0 {
			code, text = "TST-001", "run the tests: 1 of the workloads failed: writer"
		}
		return "case $* in *apps-check*) ;; *) exit 0 ;; esac\n" + says(t, code, text, nil, counted...) + "exit " + strconv.Itoa(exit)
	}
	inPlace, killed := cellOfTest, cellOfTest
	inPlace.Style, killed.Faults = "in-place", KillAtEachStep
	for name, test := range map[string]struct {
		cell   Cell
		script string
		why    string
		counts map[string]int64
	}{
		"nothing is lost": {cellOfTest, counting(0, "rows-acknowledged 7, rows-there 7", "requests 40, requests-failed 0"), "upgraded",
			map[string]int64{RowsAcknowledged: 7, RowsThere: 7, Requests: 40, RequestsFailed: 0}},
		"two who write": {cellOfTest, counting(0, "rows-acknowledged 7, rows-there 7", "rows-acknowledged 2, rows-there 2"), "upgraded",
			map[string]int64{RowsAcknowledged: 9, RowsThere: 9}},
		"a row":                         {cellOfTest, counting(4, "rows-acknowledged 7, rows-there 6"), "apps-check failed: MTX-003 1 of 7 rows that were acknowledged are missing", map[string]int64{RowsAcknowledged: 7, RowsThere: 6}},
		"a row of an upgrade killed":    {killed, counting(0, "rows-acknowledged 7, rows-there 6"), "apps-check failed: MTX-003 1 of 7 rows that were acknowledged are missing", map[string]int64{RowsAcknowledged: 7, RowsThere: 6}},
		"a request":                     {cellOfTest, counting(0, "requests 40, requests-failed 2"), "apps-check failed: MTX-003 2 of 40 requests failed in a graceful upgrade that nothing disturbed", map[string]int64{Requests: 40, RequestsFailed: 2}},
		"a request in place":            {inPlace, counting(0, "requests 40, requests-failed 2"), "upgraded", map[string]int64{Requests: 40, RequestsFailed: 2}},
		"a request when killed":         {killed, counting(0, "requests 40, requests-failed 2"), "upgraded", map[string]int64{Requests: 40, RequestsFailed: 2}},
		"rows that nobody acknowledged": {cellOfTest, counting(0, "rows-there 7"), "apps-check failed: MTX-003 the checks have counted only one of rows-acknowledged and rows-there", map[string]int64{RowsThere: 7}},
		"requests of unknown end":       {cellOfTest, counting(0, "requests 40"), "apps-check failed: MTX-003 the checks have counted only one of requests and requests-failed", map[string]int64{Requests: 40}},
		"a check that fails":            {cellOfTest, counting(4), "apps-check failed: TST-001 run the tests: 1 of the workloads failed: writer", nil},
		"a test that fails":             {cellOfTest, `case $* in *" full "*) ;; *) exit 0 ;; esac` + "\n" + says(t, "TST-001", "run the tests: 1 of the tests failed: web", nil) + "exit 4", "full failed: TST-001 run the tests: 1 of the tests failed: web", nil},
		"a release without any":         {cellOfTest, `test "$1" = test || exit 0` + "\n" + says(t, stages.CodeNoTests, "run the tests: there are none", nil) + "exit 2", "upgraded", nil},
	} {
		m, dir := commandsOf(t, test.script)
		r := m.Do(t.Context(), test.cell)
		require.Equal(t, test.why, r.Why(), name)
		require.Equal(t, test.counts, r.Counts, name)
		if r.Outcome == Failed {
			require.Subset(t, calls(t, dir, r.Deployment), []string{"report --out DIR/report", "save --out DIR/run.tar.zst", "report --out DIR/tests"}, name)
			require.NotEmpty(t, r.Package)
			require.Empty(t, r.Reproduce, "only the whole cell does")
		}
	}
}

func TestACellThatIsInterruptedIsRunAgain(t *testing.T) {
	m, dir := commandsOf(t, `test "$1" != install || { trap 'echo interrupted >&2; exit 7' INT; sleep 60 >/dev/null 2>&1 & wait; }`)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if text, _ := os.ReadFile(filepath.Join(dir, "calls")); strings.Contains(string(text), "\ninstall ") {
				time.Sleep(100 * time.Millisecond) // the trap is set
				stop()
			}
		}
	}()
	r := m.Do(ctx, cellOfTest)
	require.Equal(t, Cancelled, r.Outcome)
	_, kept := m.Results.earlier(r.Deployment)
	require.False(t, kept)
	log, err := os.ReadFile(filepath.Join(dir, "results", r.Deployment, "install.log"))
	require.NoError(t, err)
	require.Equal(t, "interrupted\n", string(log), "it ended in good order")
	require.Equal(t, []string{"destroy --yes --ignore-not-found", "install --yes --keep-cluster", "cluster --stop"}, calls(t, dir, r.Deployment))
}

// TestACellThatBeginsAnewHasNothing of what it left before.
func TestACellThatBeginsAnewHasNothing(t *testing.T) {
	m, dir := commandsOf(t, `test ! -e results/*/result.json || echo "has a result"`)
	deployment := cellOfTest.Deployment("sha256:1")
	own := filepath.Join(dir, "results", deployment)
	require.NoError(t, os.MkdirAll(own, 0o755))
	require.NoError(t, m.Results.keep(Result{Cell: cellOfTest, Deployment: deployment, Outcome: Failed}))
	require.NoError(t, os.WriteFile(filepath.Join(own, "run.tar.zst"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(own, "upgrade.log"), []byte("before\n"), 0o600))
	m.Do(t.Context(), cellOfTest)
	require.NoFileExists(t, filepath.Join(own, "run.tar.zst"))
	text, err := os.ReadFile(filepath.Join(own, "upgrade.log"))
	require.NoError(t, err)
	require.Empty(t, string(text))
}

// TestTheSecondInterruptKills what the first one waits for, and nothing is begun after it.
func TestTheSecondInterruptKills(t *testing.T) {
	m, dir := commandsOf(t, `test "$1" != install || { trap 'touch asked' INT; while :; do sleep 0.1 >/dev/null 2>&1; done; }`)
	begun := func(file string) bool {
		_, err := os.Stat(filepath.Join(dir, file))
		return err == nil
	}
	atOnce := make(chan struct{})
	m.AtOnce = atOnce
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan Result, 1)
	go func() { ended <- m.Do(ctx, cellOfTest) }()
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return strings.Contains(string(text), "\ninstall ")
	}, time.Minute, 10*time.Millisecond)
	time.Sleep(100 * time.Millisecond) // the trap is set
	stop()
	require.Eventually(t, func() bool { return begun("asked") }, time.Minute, 10*time.Millisecond)
	require.Empty(t, ended, "it is waited for")
	close(atOnce)
	select {
	case r := <-ended:
		require.Equal(t, Cancelled, r.Outcome)
	case <-time.After(time.Minute):
		require.Fail(t, "it is waited for still")
	}
	require.Equal(t, []string{"destroy --yes --ignore-not-found", "install --yes --keep-cluster"}, calls(t, dir, cellOfTest.Deployment("sha256:1")))
}
