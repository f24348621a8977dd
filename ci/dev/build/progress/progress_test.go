package progress_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/progress"
)

func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := progress.New(&out, 3, false)
		a := r.Start("kubernetes v1.35.4", "building")
		time.Sleep(80 * time.Second)
		a.Done("built")
		r.Start("runc", "building").Done("unchanged")
		b := r.Start("git", "building")
		b.Say("waiting for process 12, which builds it")
		time.Sleep(16 * time.Second)
		b.Fail()
		b.Done("built") // too late: it has failed
		r.Finish("all")
		require.Equal(t, `[1/3] kubernetes v1.35.4: building … 15s
[1/3] kubernetes v1.35.4: building … 30s
[1/3] kubernetes v1.35.4: building … 45s
[1/3] kubernetes v1.35.4: building … 1m00s
[1/3] kubernetes v1.35.4: building … 1m15s
[1/3] kubernetes v1.35.4: built in 1m20s
[2/3] runc: unchanged
[3/3] git: waiting for process 12, which builds it …
[3/3] git: waiting for process 12, which builds it … 15s
[3/3] git: failed in 16s
all: 1 built, 1 unchanged, 1 failed in 1m36s
`, out.String())
	})
}

func TestTerminalLineIsRewritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := progress.New(&out, 1, true)
		a := r.Start("x", "building")
		time.Sleep(1500 * time.Millisecond)
		a.Done("built")
		require.Equal(t, "[1/1] x: building …\r\x1b[K[1/1] x: building … 1.0s\r\x1b[K[1/1] x: built in 1.5s\n", out.String())
	})
}

func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		420 * time.Millisecond:         "0.4s",
		12 * time.Second:               "12s",
		80 * time.Second:               "1m20s",
		3 * time.Hour:                  "3h00m",
		65*time.Minute + 9*time.Second: "1h05m",
	} {
		require.Equal(t, want, progress.Round(d))
	}
}

// TestTheTimeThatIsLeft: after a minute, finished tasks tell how long the remaining ones take.
func TestTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := progress.New(&out, 5, false)
		r.Expect(map[string]int{"a": 10, "b": 100, "c": 20, "d": 60})
		for _, c := range []struct {
			name, outcome, says string
			took                time.Duration
		}{
			{"a", "built", "[1/5] a: built in 20s\n", 20 * time.Second},
			{"b", progress.Unchanged, "[2/5] b: unchanged\n", 0},
			{"c", "built", "[3/5] c: built in 1m40s; about 4 min left\n", 100 * time.Second},
			{"other", "built", "[4/5] other: built in 30s; about 5 min left\n", 30 * time.Second},
			{"d", "built", "[5/5] d: built in 10s\n", 10 * time.Second},
		} {
			task := r.Start(c.name, "building")
			time.Sleep(c.took)
			task.Done(c.outcome)
			require.Contains(t, out.String(), c.says)
		}
	})
}
