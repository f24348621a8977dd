package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// kind is a way to disturb an install. do returns what it did, and false if the install was over
// before anything could be done to it, or before it had to notice. It fails the test unless the
// install ends as it may.
type kind struct {
	name string
	do   func(c *chaos, t *testing.T, i *running) (what string, done bool)
}

// kinds are all of them, in the order in which they are played; CONTRIBUTING.md says what they do.
func kinds() []kind {
	return []kind{
		{"kill-conductor", (*chaos).killConductor},
		{"kill-step", (*chaos).killStep},
		{"kill-engine", (*chaos).killEngine},
		{"stop-conductor", (*chaos).stopConductor},
		{"stop-holder", (*chaos).stopHolder},
		{"contend", (*chaos).contend},
		{"contend-killed", (*chaos).contendKilled},
		{"contend-stopped", (*chaos).contendStopped},
		{"partition", (*chaos).partition},
	}
}

func names(all []kind) (out []string) {
	for _, k := range all {
		out = append(out, k.name)
	}
	return out
}

func (c *chaos) killConductor(_ *testing.T, i *running) (string, bool) {
	i.kill()
	return "", i.status() != 0
}

func (c *chaos) killStep(t *testing.T, i *running) (string, bool) {
	var step string
	p, found := i.find(t, func(p process) bool {
		step, _ = p.step(c.Name)
		return step != ""
	})
	if !found || syscall.Kill(p.pid, syscall.SIGKILL) != nil {
		return "", false
	}
	return "killed " + step, i.fails(t)
}

// killEngine ends the engine's process; what it had started goes with it. The install then ends by
// itself.
func (c *chaos) killEngine(t *testing.T, i *running) (string, bool) {
	require.NoError(t, syscall.Kill(enginePID(t), syscall.SIGKILL))
	ended := i.endsWithin(time.Minute)
	start := exec.CommandContext(t.Context(), "go", "run", "-C", "ci/dev/engine", ".", "start")
	start.Dir = c.Root
	r := finish(t, start)
	require.Zero(t, r.code, slipway.Tail(r.err))
	require.True(t, ended, "the install goes on a minute after its engine was killed")
	return "", i.fails(t)
}

func (c *chaos) stopConductor(t *testing.T, i *running) (string, bool) {
	n, thaw := freeze(t, i.cmd.Process.Pid)
	i.endsWithin(c.pause)
	thaw()
	i.fails(t) // or goes on
	return fmt.Sprintf("the conductor was stopped, %d processes", n), true
}

// stopHolder stops what holds the lock of the install, which must stop by itself.
func (c *chaos) stopHolder(t *testing.T, i *running) (string, bool) {
	_, holder, found := c.holder(t, i)
	if !found {
		return "", false
	}
	stopped := time.Now()
	_, thaw := freeze(t, holder.pid)
	i.endsWithin(c.pause)
	thaw()
	return "its holder was stopped", i.losesLock(t, stopped)
}

// contend begins another install while the first one works.
func (c *chaos) contend(t *testing.T, i *running) (string, bool) {
	run, _, found := c.holder(t, i)
	if !found {
		return "", false
	}
	return "another one while it works: " + oneWorked(t, i, c.contends(t, i, run)), true
}

// contendKilled ends what holds the lock of the install, and begins another one, which has to
// succeed.
func (c *chaos) contendKilled(t *testing.T, i *running) (string, bool) {
	run, holder, found := c.holder(t, i)
	if !found || syscall.Kill(holder.pid, syscall.SIGKILL) != nil {
		return "", false
	}
	killed := time.Now()
	other := c.contends(t, i, run)
	require.Zero(t, other.status(), slipway.Tail(other.out.String()))
	return "another one after its holder was killed", i.losesLock(t, killed)
}

// contendStopped begins another install while what holds the lock of the first is stopped; with
// two engines, its whole machine.
func (c *chaos) contendStopped(t *testing.T, i *running) (string, bool) {
	run, holder, found := c.holder(t, i)
	if !found {
		return "", false
	}
	what, roots := "its holder", []int{holder.pid}
	if c.rival != nil {
		what, roots = "its machine", []int{i.cmd.Process.Pid, enginePID(t)}
	}
	_, thaw := freeze(t, roots...)
	thawed := make(chan struct{})
	go func() {
		defer close(thawed)
		i.endsWithin(c.pause)
		thaw()
	}()
	other := c.contends(t, i, run)
	<-thawed
	return "another one while " + what + " is stopped: " + oneWorked(t, i, other), true
}

// partition has the network between the containers and the bucket fail in one way, which is drawn.
// Requests that are late are so by less than the time between two heartbeats and the next.
func (c *chaos) partition(t *testing.T, i *running) (string, bool) {
	require.NotNil(t, c.proxy, "partition needs -bucket")
	modes := []mode{cutOff, deliverLate, deliverTwice}
	how := modes[c.random.IntN(len(modes))]
	before := c.proxy.sums()[how]
	c.proxy.set(disturbance{mode: how, delay: 4 * time.Second})
	i.endsWithin(c.pause)
	c.proxy.set(disturbance{})
	n := c.proxy.sums()[how] - before
	if n == 0 {
		return "", false
	}
	i.fails(t) // or goes on
	return fmt.Sprintf("%s %d requests to the bucket", how, n), true
}

// find waits until a process is wanted, at most until the install is over.
func (i *running) find(t *testing.T, wanted func(process) bool) (process, bool) {
	t.Helper()
	for {
		for _, p := range processes(t) {
			if wanted(p) {
				return p, true
			}
		}
		if i.endsWithin(20 * time.Millisecond) {
			return process{}, false
		}
	}
}

// holder waits until the install works under the lock, and returns its run and what holds the lock
// for it.
func (c *chaos) holder(t *testing.T, i *running) (run string, p process, found bool) {
	t.Helper()
	works := func(p process) bool {
		step, its := p.step(c.Name)
		run = its
		return step != "" && step != contract.PreflightStep().String()
	}
	if _, found = i.find(t, works); !found {
		return "", p, false
	}
	p, found = i.find(t, func(p process) bool {
		return len(p.args) > 2 && strings.HasSuffix(p.args[0], "slipway") && p.args[1] == "state" && p.args[2] == "hold" && strings.Contains(strings.Join(p.args, " "), run)
	})
	return run, p, found
}

// contends begins another install while i works for a run, and returns it once both are over. On
// one engine no step of the one runs beside one of the other.
func (c *chaos) contends(t *testing.T, i *running, run string) *running {
	t.Helper()
	k := c.rival
	if k == nil {
		k = c.kept
	}
	other := c.begins(t, k, c.complete()...)
	for end := time.Now().Add(endLimit); !i.endsWithin(25*time.Millisecond) || !other.endsWithin(25*time.Millisecond); {
		require.True(t, time.Now().Before(end), "two installs contend for longer than %s", endLimit)
		if c.rival != nil {
			continue
		}
		var first, second string
		for _, p := range processes(t) {
			switch step, its := p.step(c.Name); {
			case step == "" || step == contract.PreflightStep().String():
			case its == run:
				first = step
			default:
				second = step
			}
		}
		require.False(t, first != "" && second != "", "%s of the second install runs beside %s of the first", second, first)
	}
	return other
}

// oneWorked tells how two installs ended, of which at most one at a time may have worked.
func oneWorked(t *testing.T, i, other *running) string {
	t.Helper()
	a, b := i.status(), other.status()
	if i.code() == string(lock.CodeRelease) {
		a = 0 // it was done, and the lock expires
	}
	switch {
	case a == 0 && b == 0:
		return "it worked after the first"
	case a == 0 && b == int(fault.Locked):
		return "it did not get the lock"
	}
	require.Equal(t, []int{int(fault.Locked), 0}, []int{a, b}, "neither of two installs gave way to the other")
	return "it took over"
}

// noticed is how long an install may take to end once what holds its lock is gone or stopped: what
// docs/state.md says, and half a minute to stop the cluster and write the record on a machine that
// does other things, too.
const noticed = over + 30*time.Second

// losesLock asserts that an install ends because it lost its lock at a moment. It returns false if
// the install succeeded before that had to be noticed.
func (i *running) losesLock(t *testing.T, lost time.Time) bool {
	t.Helper()
	require.True(t, i.endsWithin(2*noticed), "the install goes on %s after it has lost the lock", 2*noticed)
	took := i.ended.Sub(lost)
	require.LessOrEqual(t, took, noticed, "the install went on without the lock")
	switch {
	case i.status() == 0:
		return false
	case i.code() == string(lock.CodeRelease): // it was done before that had to be noticed
		return true
	}
	require.Equal(t, int(fault.Locked), i.status(), "the install ended otherwise than for its lock")
	return true
}

// enginePID is the engine of the tests, as make engine has put it on record.
func enginePID(t *testing.T) int {
	t.Helper()
	var engine struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(read(t, engineDir(t), "engine.pid")), &engine))
	require.Greater(t, engine.PID, 1)
	return engine.PID
}

// freeze stops processes and all below them, and returns how many once all of them stand still, and
// what lets them go on.
func freeze(t *testing.T, roots ...int) (n int, thaw func()) {
	t.Helper()
	stopped := map[int]bool{}
	thaw = func() {
		for pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been killed meanwhile
		}
	}
	t.Cleanup(thaw)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		moving := 0
		for _, p := range descendants(t, roots...) {
			// One in the kernel stops when it leaves that; it may wait there for a child that has stopped (vfork).
			if strings.Contains("TZX", p.state) || p.state == "D" && stopped[p.pid] {
				continue
			}
			moving++ // what it has started meanwhile is seen the next time
			if syscall.Kill(p.pid, syscall.SIGSTOP) == nil {
				stopped[p.pid] = true
			}
		}
		if moving == 0 {
			return len(stopped), thaw
		}
		require.True(t, time.Now().Before(end), "%d processes do not stand still", moving)
	}
}

// TestFreeze stops and resumes a tree of processes, also a tree that keeps starting processes.
func TestFreeze(t *testing.T) {
	counter := write(t, "0")
	cmd := exec.Command("sh", "-c", `sleep 1001 & n=0; while :; do n=$((n+1)); sleep 0.001; echo $n >"$0"; done`, counter)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	count := func() string {
		text, err := os.ReadFile(counter)
		require.NoError(t, err)
		return string(text)
	}
	goesOn := func() {
		stood := count()
		require.Eventually(t, func() bool { return count() != stood }, 10*time.Second, time.Millisecond)
	}
	for range 10 {
		goesOn()
		n, thaw := freeze(t, cmd.Process.Pid)
		require.GreaterOrEqual(t, n, 2)
		stood := count()
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, stood, count())
		thaw()
	}
	goesOn()
}
