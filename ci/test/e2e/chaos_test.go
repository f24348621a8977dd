package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// The flags of make chaos.
var (
	rounds        = flag.Int("rounds", 0, "how many installs TestChaos disturbs")
	seed          = flag.Uint64("seed", 0, "of all that is random in TestChaos; 0 takes one from the clock")
	kindNames     = flag.String("kinds", "", "how TestChaos disturbs them, in turn: "+strings.Join(names(kinds()), ","))
	inBucket      = flag.Bool("bucket", false, "keep the state of TestChaos in a bucket, which partition needs")
	chaosPlatform = flag.String("platform", "", "directory of the platform release of TestChaos; the reference platform if not given")
)

// over is how long after a holder's last sign of life another run may take its lock.
const over = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace

// TestChaos is make chaos.
func TestChaos(t *testing.T) {
	if *rounds == 0 {
		t.Skip("make chaos runs it")
	}
	c := newChaos(t, "chaos", "")
	if *chaosPlatform != "" {
		c.args = []string{"--platform", *chaosPlatform}
	}
	if *inBucket {
		c.keepInBucket(t, "")
	}
	c.seed = *seed
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano())
	}
	c.play(t, *rounds, *kindNames)
}

// TestChaosOfTheEngine and TestChaosOfTheHolder are the short form of make chaos, with the platform
// of manifests. Installs of the reference platform, and on an existing cluster, are killed by
// TestLifecycle and TestExistingCluster. This one kills the engine, before the tests that share it,
// which are parallel.
func TestChaosOfTheEngine(t *testing.T) {
	takesLong(t)
	newChaos(t, "e2e-chaos", "").ofManifests().play(t, 1, "kill-engine")
}

// TestChaosOfTheHolder stops the lock holder for longer than another run waits for the lock; then
// it kills the holder while another install begins, and last a step.
func TestChaosOfTheHolder(t *testing.T) {
	takesLong(t)
	beside(t)
	c := newChaos(t, "e2e-holder", "local: {apiPort: 9943}\n").ofManifests()
	c.pause = over + 10*time.Second
	c.play(t, 3, "stop-holder,contend-killed,kill-step")
}

// TestChaosOfTwoEngines: each is on a machine of its own, and what they have in common is a bucket
// with the state and a cluster. One installs; the other one begins to, in one round while the first
// one's machine works, in the other one while it is stopped, and with it the engine that the tests
// share, so that this is not parallel.
func TestChaosOfTwoEngines(t *testing.T) {
	takesLong(t)
	r := startRegistry(t)
	second := secondEngine(t)
	host := open(t, "e2e-host") // on the second engine, for the first one is stopped
	host.Env = append(host.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+second.address)
	there, kubeconfig := another(t, r, host)
	admit(t, engineNetwork(t, r.bridge), engineNetwork(t, strings.Fields(there.shell(t, "getent hosts cluster"))[0])) // its load balancer's address
	c := newChaos(t, "e2e-rivals", "").ofManifests()
	c.own = false
	c.Lock = r.push(t, c.Bundle, filepath.Join(t.TempDir(), "slipway.lock.json"))
	c.keepInBucket(t, fmt.Sprintf("provider: existing\nexisting: {kubeconfig: %q, registry: %q}\n", "file:"+kubeconfig, r.bridge+"/team/slipway"))
	c.rival = c.with(c.config)
	c.rival.Env = append(slices.Clone(c.Env), "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+second.address)
	c.play(t, 2, "contend,contend-stopped")
	require.Contains(t, c.showed[0], "another one while it works: ")
	require.Contains(t, c.showed[1], "another one while its machine is stopped: it took over, it ended with 6 LOK-002")
}

// chaos disturbs installs of a deployment. A round installs it from nothing, does one thing to that
// install at a random moment, such as killing or stopping a process, and installs again. It passes if
//   - the disturbed install has ended as it may,
//   - the next one has made the cluster and the recorded state those of an undisturbed install,
//   - no step ran again that had succeeded before and whose result still held,
//   - and the records of lock and journal are what docs/state.md promises: see history.
//
// All that is random follows from the seed and the number of the round.
type chaos struct {
	*kept
	args   []string      // of every install
	own    bool          // Slipway runs the cluster, on the engine
	rival  *kept         // the same deployment on the other engine, where the other install is; nil: on this one
	pause  time.Duration // how long something is stopped or cut off
	server s3Server      // with the state, if there is a proxy
	proxy  *badNetwork   // between the deployment and the server; nil: the state is on a volume
	seed   uint64

	clean     facts           // what an undisturbed install makes
	took      time.Duration   // how long that took
	journaled map[string]bool // its steps in the journal
	random    *rand.Rand      // of the round
	installs  []*running      // of the round
	showed    []string        // what each round did
}

// newChaos is for a deployment on a cluster that Slipway runs. more is of its configuration.
func newChaos(t *testing.T, name, more string) *chaos {
	t.Helper()
	return &chaos{kept: &kept{deployment: open(t, name), config: write(t, configured+more)}, own: true, pause: 2 * time.Minute, seed: 1}
}

func (c *chaos) ofManifests() *chaos {
	c.args = []string{"--platform", filepath.Join(c.Root, "examples/platform/manifests/1.0.0")}
	return c
}

// keepInBucket puts the state into a bucket behind a proxy. more is of the configuration.
func (c *chaos) keepInBucket(t *testing.T, more string) {
	t.Helper()
	_ = c.cli(t, "destroy", "--yes", "--ignore-not-found") // of a volume of earlier rounds the bucket knows nothing
	c.server = startS3(t)
	var err error
	c.proxy, err = listen(bridgeAddress(t), c.server.Address, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.proxy.close()) })
	c.Env = append(c.Env, "E2E_ID="+s3ID, "E2E_SECRET="+s3Secret)
	c.config = write(t, configured+more+stateAt(c.proxy.address(), ageKey(t)))
}

// play plays rounds of kinds, in turn; without a list of all that there can be.
func (c *chaos) play(t *testing.T, rounds int, list string) {
	t.Helper()
	t.Logf("seed %d", c.seed)
	t.Cleanup(func() { _ = finish(t, c.command(context.Background(), "destroy", "--yes", "--ignore-not-found")) })
	played := kinds()
	if list != "" {
		played = nil
		for name := range strings.SplitSeq(list, ",") {
			at := slices.Index(names(kinds()), name)
			require.GreaterOrEqual(t, at, 0, "there is no kind %q", name)
			played = append(played, kinds()[at])
		}
	} else if c.proxy == nil {
		played = slices.DeleteFunc(played, func(k kind) bool { return k.name == "partition" })
	}
	// An install of two minutes or more may have imported images first: it is repeated once.
	for n := 0; n == 0 || n == 1 && c.took > 2*time.Minute; n++ {
		c.must(t, "destroy", "--yes", "--ignore-not-found")
		c.took = c.must(t, "install", c.complete()...).took
	}
	c.clean, _, _ = c.look(t)
	c.journaled = c.history(t).steps()
	for n := range rounds {
		k := played[n%len(played)]
		t.Run(fmt.Sprintf("%d %s", n+1, k.name), func(t *testing.T) {
			c.random = rand.New(rand.NewPCG(c.seed, uint64(n+1))) // moments, not secrets
			c.round(t, k)
		})
	}
}

// complete are the arguments of an install whose cluster is looked at afterwards: one of Slipway's
// keeps running until it is removed.
func (c *chaos) complete(more ...string) []string {
	if c.own {
		more = append(more, "--keep-cluster")
	}
	return append(more, c.args...)
}

// replays is how often a round is played again because the install was over too early.
const replays = 8

func (c *chaos) round(t *testing.T, k kind) {
	moment := time.Duration((0.03 + 0.9*c.random.Float64()) * float64(c.took))
	for n := 0; ; n++ {
		require.LessOrEqual(t, n, replays, "the installs were over before they could be disturbed")
		c.must(t, "destroy", "--yes", "--ignore-not-found")
		c.installs = nil
		i := c.begins(t, c.kept, c.args...)
		if !i.endsWithin(moment) {
			at := i.at()
			if what, done := k.do(c, t, i); done {
				require.True(t, i.endsWithin(endLimit), "the install goes on %s later", endLimit)
				c.showed = append(c.showed, fmt.Sprintf("after %s: %s %s, %s", moment.Round(100*time.Millisecond), at, what, i.outcome()))
				break
			}
		}
		i.kill()
		moment /= 2 // this install was faster than the undisturbed one, or over before it had to notice
	}
	t.Log(c.showed[len(c.showed)-1])

	r := c.must(t, "install", c.complete("--lock-timeout", "1m")...)
	got, run, dir := c.look(t)
	require.NoError(t, c.clean.compare(got))
	before := map[string]bool{}
	var said []acknowledged
	for _, i := range c.installs {
		one := c.acknowledged(i.out.String())
		said = append(said, one)
		for _, step := range one.steps {
			before[step] = true
		}
	}
	reused := 0
	for _, s := range run.Steps {
		switch {
		case !before[s.ID()]:
		case s.Status == pipeline.Reused:
			reused++
		default:
			// The cluster is not as the step left it, or takes longer to answer than a check may.
			require.Regexp(t, "does not hold any more|verify "+s.ID()+": context deadline exceeded", read(t, dir, "steps/"+s.Stage+"."+s.Step+"/log.txt"), "%s had succeeded, and is %s the second time", s.ID(), s.Status)
		}
	}
	h := c.history(t)
	require.NotEmpty(t, h.attempts)
	require.Empty(t, h.problems(append(said, c.acknowledged(r.out+r.err))...))
	t.Logf("equal: %d steps reused, %d attempts by %d runs", reused, len(h.attempts), len(h.locks))
}

// look returns what there is of the deployment, which is installed, in the cluster and in the
// recorded state, and the last run's record and directory.
func (c *chaos) look(t *testing.T) (facts, *report.Run, string) {
	t.Helper()
	args, whose := []string{"--", "sh", "-ceu", factsScript, "sh"}, "" // everything there is
	if !c.own {
		args, whose = append(args, "--show-managed-fields"), c.Name
	}
	r := finish(t, c.command(t.Context(), "toolchain", args...))
	require.Zero(t, r.code, slipway.Tail(r.err))
	f, err := factsOf([]byte(r.out), whose)
	require.NoError(t, err)
	dir := c.report(t)
	run, err := report.Decode([]byte(read(t, dir, report.RecordFile)))
	require.NoError(t, err)
	f["platform"] = fmt.Sprint(run.Platform.Name, " ", run.Platform.Version, " ", run.Platform.Digest)
	f["state.yaml"] = withoutChance(read(t, dir, "state.yaml"))
	for _, s := range run.Steps {
		if s.Stage == report.HooksStage {
			continue
		}
		f["step "+s.ID()] = string(s.Status)
		if s.Status.OK() {
			f["step "+s.ID()] = "done" // in this run or in an earlier one
		}
	}
	return f, run, dir
}

// endLimit is how long an install may go on after it was disturbed.
const endLimit = 15 * time.Minute

// running is an install that goes on.
type running struct {
	cmd   *exec.Cmd
	out   transcript
	gone  chan struct{} // closed once it has ended
	ended time.Time     // read after gone
}

// begins starts an install, which does not outlive the test.
func (c *chaos) begins(t *testing.T, k *kept, args ...string) *running {
	t.Helper()
	i := &running{cmd: k.command(t.Context(), "install", args...), gone: make(chan struct{})}
	i.cmd.Stdout, i.cmd.Stderr = &i.out, &i.out
	require.NoError(t, i.cmd.Start())
	go func() {
		_ = i.cmd.Wait() // its state says how it ended
		i.ended = time.Now()
		close(i.gone)
	}()
	t.Cleanup(func() {
		i.kill()
		if t.Failed() {
			t.Logf("an install of the round, which ended with %d:\n%s", i.status(), slipway.Tail(i.out.String()))
		}
	})
	c.installs = append(c.installs, i)
	return i
}

// endsWithin returns once the install has ended, or a time is over.
func (i *running) endsWithin(limit time.Duration) bool {
	select {
	case <-i.gone:
		return true
	case <-time.After(limit):
		return false
	}
}

// kill ends it, if it has not ended yet.
func (i *running) kill() {
	_ = i.cmd.Process.Kill()
	<-i.gone
}

// status is its exit status, once it has ended; -1 if it was killed.
func (i *running) status() int { return i.cmd.ProcessState.ExitCode() }

// fails waits for the end of an install that cannot go on, or may not, and fails the test unless
// it ends with a code. It returns false if the install has succeeded.
func (i *running) fails(t *testing.T) bool {
	t.Helper()
	require.True(t, i.endsWithin(endLimit), "the install goes on for longer than %s", endLimit)
	if i.status() == 0 {
		return false
	}
	require.GreaterOrEqual(t, i.status(), int(fault.Preflight), "it ended for a bug, or for how it was called")
	require.NotEmpty(t, i.code(), "it ended without a code")
	return true
}

// Lines of an install without a terminal. What a step says itself is indented.
var (
	stepLine  = regexp.MustCompile(`(?m)^([a-z0-9-]+/[a-z0-9-]+): (running|reused|succeeded|failed|warned)\b`)
	doneLine  = regexp.MustCompile(`(?m)^([a-z0-9-]+/[a-z0-9-]+): succeeded after `)
	runLine   = regexp.MustCompile(`(?m), run (\d{8}-\d{6}-[0-9a-f]{6})$`)
	errorLine = regexp.MustCompile(`(?m)^error ([A-Z]{3}-\d{3}): `)
)

// at is the last line in which the install named a step.
func (i *running) at() string {
	if all := stepLine.FindAllString(i.out.String(), -1); len(all) > 0 {
		return all[len(all)-1]
	}
	return "before the first step"
}

// code is that of its first error; empty without one.
func (i *running) code() string {
	if m := errorLine.FindStringSubmatch(i.out.String()); m != nil {
		return m[1]
	}
	return ""
}

// outcome is how it has ended, in a few words.
func (i *running) outcome() string {
	if i.status() == 0 {
		return "it succeeded"
	}
	return strings.TrimSpace(fmt.Sprintf("it ended with %d %s", i.status(), i.code()))
}

// acknowledged reads what an install has printed of the steps that have a journal.
func (c *chaos) acknowledged(printed string) (a acknowledged) {
	if m := runLine.FindStringSubmatch(printed); m != nil {
		a.run = m[1]
	}
	for _, m := range doneLine.FindAllStringSubmatch(printed, -1) {
		if c.journaled[m[1]] {
			a.steps = append(a.steps, m[1])
		}
	}
	return a
}
