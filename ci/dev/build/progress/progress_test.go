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
		r := progress.New(&out, 3)
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
[1/3] kubernetes v1.35.4: building … 1m0s
[1/3] kubernetes v1.35.4: building … 1m15s
[1/3] kubernetes v1.35.4: built in 1m20s
[2/3] runc: unchanged
[3/3] git: waiting for process 12, which builds it …
[3/3] git: waiting for process 12, which builds it … 15s
[3/3] git: failed in 16s
all (took 1m36s)
`, out.String())
	})
}

// TestTheTimeThatIsLeft: after a minute, finished tasks tell how long the remaining ones take.
func TestTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := progress.New(&out, 5)
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
