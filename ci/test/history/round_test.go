package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/ci/test/s3/gateway"
	"github.com/slipway-sh/slipway/ci/test/s3/gateway/gatewaytest"
	"github.com/slipway-sh/slipway/ci/test/s3/proxy"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// round is one deployment for which contenders contend while the network fails.
type round struct {
	settings
	server     string // address
	name       string // of the deployment, in the bucket
	dir        string // of its history, which must be empty
	contenders int
	processes  int  // of the contenders; the others are in this one
	calm       bool // nothing is done to the network, and nothing is forced
	duration   time.Duration
	seed       uint64
}

// machine is where a contender is: all that it sends goes through its two proxies.
type machine struct {
	hold, work *proxy.Proxy
}

// play plays the round and returns what is wrong with its history.
func (r round) play(t *testing.T) ([]history.Anomaly, summary) {
	t.Helper()
	require.NoError(t, os.MkdirAll(r.dir, 0o700))
	direct, err := gatewaytest.Open(t.Context(), gateway.URL(r.server, gateway.Bucket, r.name))
	require.NoError(t, err)
	log, err := history.Create(r.dir, "round")
	require.NoError(t, err)
	machines := make([]machine, r.contenders)
	for i := range machines {
		machines[i] = machine{r.listen(t, r.seed+uint64(2*i), log), r.listen(t, r.seed+uint64(2*i+1), log)}
	}
	total := r.contend(t, machines, lock.New(direct, lock.Options{Beat: r.Beat, TTL: r.TTL, Grace: r.Grace}), log)
	for _, m := range machines {
		for _, p := range []*proxy.Proxy{m.hold, m.work} {
			require.NoError(t, p.Close())
			for mode, n := range p.Counts() {
				if mode != proxy.Pass {
					total[string(mode)] += n
				}
			}
		}
	}
	look(t, direct, log)
	require.NoError(t, log.Close())
	require.NoError(t, direct.Close())
	events, err := history.Load(r.dir)
	require.NoError(t, err)
	for _, e := range events {
		total[string(e.Op)]++
	}
	return history.Check(events), total
}

// contend lets a contender contend on each machine, disturbs them, and ends it all.
func (r round) contend(t *testing.T, machines []machine, observer *lock.Lock, log *history.Log) summary {
	t.Helper()
	random := rand.New(rand.NewPCG(r.seed, 0)) // moments, not secrets
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var all sync.WaitGroup
	counts, errs := make([]summary, len(machines)), make([]error, len(machines))
	var holder atomic.Value // its name, as of a moment ago
	holder.Store("")
	all.Go(func() {
		for ctx.Err() == nil {
			if now, err := observer.Current(ctx); err == nil && now != nil {
				holder.Store(now.Holder.User)
			}
			sleep(ctx, r.Beat)
		}
	})
	for i, m := range machines {
		d := description{
			Settings: r.settings, Name: fmt.Sprintf("c%02d", i), Seed: random.Uint64(), Dir: r.dir,
			Skew: []time.Duration{0, 0, r.TTL / 2, -r.TTL / 2, time.Hour, -time.Hour}[i%6],
			Hold: gateway.URL(m.hold.Address(), gateway.Bucket, r.name), Work: gateway.URL(m.work.Address(), gateway.Bucket, r.name),
		}
		fate, weather := rand.New(rand.NewPCG(r.seed, random.Uint64())), rand.New(rand.NewPCG(r.seed, random.Uint64()))
		all.Go(func() {
			if i < r.processes {
				counts[i], errs[i] = r.live(ctx, d, func() string { return holder.Load().(string) }, fate)
			} else {
				errs[i] = d.contend(ctx)
			}
		})
		if !r.calm {
			all.Go(func() { m.disturb(ctx, r.settings, weather) })
		}
	}
	if !r.calm {
		all.Go(func() { r.force(ctx, observer, log) })
	}
	time.Sleep(r.duration)
	end()
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	total := summary{}
	for _, c := range counts {
		total.add(c)
	}
	return total
}

// listen starts a proxy, which notes what of the register arrives late.
func (r round) listen(t *testing.T, seed uint64, log *history.Log) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Listen("127.0.0.1", r.server, seed, func(w proxy.Write) {
		var v registered
		if !strings.Contains(w.Path, "/register/") || json.Unmarshal(w.Body, &v) != nil {
			return
		}
		now := history.Now()
		if err := log.Add(history.Event{Op: history.Arrive, Generation: v.Generation, N: v.N, Call: now, Return: now}); err != nil {
			panic(err)
		}
	})
	require.NoError(t, err)
	return p
}

// disturb does one thing after another to what a machine sends: to what holds its lock, to what
// works under it, or to both.
func (m machine) disturb(ctx context.Context, s settings, random *rand.Rand) {
	set := func(hold, work proxy.Fault) {
		m.hold.Set(hold)
		m.work.Set(work)
	}
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(random.Float64()*float64(2*s.over())))
		modes := proxy.Modes()
		f := proxy.Fault{Mode: modes[random.IntN(len(modes))], Share: []float64{0.3, 1}[random.IntN(2)], Delay: time.Duration(random.Float64() * float64(s.TTL))}
		switch random.IntN(3) {
		case 0:
			set(f, proxy.Fault{})
		case 1:
			set(proxy.Fault{}, f)
		case 2:
			set(f, f)
		}
		sleep(ctx, time.Duration(random.Float64()*1.5*float64(s.over())))
		set(proxy.Fault{}, proxy.Fault{})
	}
}

// force breaks the lock by force every now and then.
func (r round) force(ctx context.Context, l *lock.Lock, log *history.Log) {
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(rand.Float64()*6*float64(r.over())))
		e := history.Event{Op: history.Force, Call: history.Now()}
		broken, err := l.Unlock(ctx, lock.Holder{User: "operator", Host: "host"}, "in the way", true)
		if err != nil {
			continue // nobody has it, or it is the end
		}
		e.Return, e.Generation, e.Token = history.Now(), broken.Generation, broken.Token
		if err := log.Add(e); err != nil {
			panic(err)
		}
	}
}

var attemptRE = regexp.MustCompile(`^runs/([^/]+)/steps/`)

// look notes what is in the journal in the end.
func look(t *testing.T, s *store.Store, log *history.Log) {
	t.Helper()
	note := func(op history.Op, a journal.Attempt) {
		n, err := strconv.Atoi(string(a.Output))
		if err != nil {
			n = 0 // it has not ended, or not well
		}
		now := history.Now()
		require.NoError(t, log.Add(history.Event{Op: op, Call: now, Return: now, Run: a.Run, Step: a.Step, N: n}))
	}
	keys, err := s.List(t.Context(), "runs/")
	require.NoError(t, err)
	runs := map[string]bool{}
	for _, key := range keys {
		if m := attemptRE.FindStringSubmatch(key); m != nil {
			runs[m[1]] = true
		}
	}
	ledger := journal.On(s, deployment)
	for run := range runs {
		attempts, err := ledger.Run(t.Context(), run)
		require.NoError(t, err)
		for _, a := range attempts {
			note(history.Found, a)
		}
	}
	all, err := ledger.All(t.Context())
	require.NoError(t, err)
	for _, a := range all {
		note(history.Last, a)
	}
}

// folder is the directory of a history.
func folder(parent, name string) string {
	return filepath.Join(parent, strings.ReplaceAll(name, " ", "-"))
}
