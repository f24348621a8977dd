package history_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/ci/test/s3/gateway/gatewaytest"
)

var (
	duration   = flag.Duration("duration", 45*time.Second, "how long contenders contend; over some minutes, in rounds")
	contenders = flag.Int("contenders", 12, "how many contend, a third of them as processes")
	beat       = flag.Duration("beat", 300*time.Millisecond, "time between heartbeats, of which all other times are multiples")
	seed       = flag.Uint64("seed", 0, "of the faults; 0 takes one from the clock")
	kept       = flag.String("histories", "", "directory for the histories; they are only kept if one is wrong if not given")
)

// Contenders contend for one deployment for roundLimit, then for the next one. After the last
// round there are more until something of everything was seen, but no more than extraRounds.
const (
	roundLimit  = 2 * time.Minute
	extraRounds = 4
)

// usual is fast enough for many takeovers, and slow enough for a machine that is busy.
func usual(contenders int, flaw flaw) settings {
	return settings{
		Beat: *beat, TTL: 10 * *beat, Grace: 5 * *beat, Flaw: flaw,
		Pause: *beat * time.Duration(contenders) / 5, // together they ask about as often, however many they are
	}
}

// TestHistory: whatever the network does, and whoever dies, nothing happens that the protocol
// excludes; and it is noticed when something does.
func TestHistory(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	dir := *kept
	if dir == "" {
		var err error
		dir, err = os.MkdirTemp("", "slipway-history-")
		require.NoError(t, err)
		t.Cleanup(func() {
			if !t.Failed() {
				require.NoError(t, os.RemoveAll(dir))
			}
		})
	}
	t.Logf("seed %d, histories in %s", *seed, dir)
	server := gatewaytest.Start(t, "../s3/server")
	total, extra := summary{}, 0
	for began, n := time.Now(), 1; !t.Failed(); n++ {
		left := *duration - time.Since(began)
		if left <= 0 {
			if len(total.missing()) == 0 || extra == extraRounds {
				break
			}
			left, extra = *duration, extra+1
		}
		name := fmt.Sprintf("round %d", n)
		t.Run(name, func(t *testing.T) {
			r := round{
				settings: usual(*contenders, ""), server: server, name: folder("", name), dir: folder(dir, name),
				contenders: *contenders, processes: *contenders / 3, duration: min(left, roundLimit), seed: *seed + uint64(n),
			}
			anomalies, counts := r.play(t)
			t.Log(counts)
			total.add(counts)
			for _, a := range anomalies[:min(len(anomalies), 5)] {
				t.Error(a)
			}
			if t.Failed() {
				page := filepath.Join(r.dir, "register.html")
				require.NoError(t, history.Draw(r.dir, page))
				t.Logf("what was read and written of the register: %s", page)
			}
		})
	}
	t.Logf("in all: %s", total)
	require.Empty(t, total.missing(), "what did not happen")
}

// TestFlaws: a protocol that is wrong is found to be.
func TestFlaws(t *testing.T) {
	server, dir := gatewaytest.Start(t, "../s3/server"), t.TempDir()
	for flaw, kind := range map[flaw]history.Kind{
		unfenced: history.Unheld, unversioned: history.Wrong, hasty: history.Overlap, forgetful: history.Missing,
	} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			found := map[history.Kind]bool{}
			for n := 1; !found[kind] && n < 10; n++ {
				name := fmt.Sprintf("%s %d", flaw, n)
				r := round{
					settings: usual(4, flaw), server: server, name: folder("", name), dir: folder(dir, name),
					contenders: 4, calm: true, duration: 8 * time.Second, seed: uint64(n),
				}
				anomalies, counts := r.play(t)
				for _, a := range anomalies {
					found[a.Kind] = true
				}
				t.Log(counts, found)
			}
			require.True(t, found[kind])
		})
	}
}
