package containers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

const givenUp = "flightcontrol: exceeded retry timeout"

// sleeper is a deployment whose machine may sleep.
type sleeper struct {
	*Deployment
	exports atomic.Int64 // that the engine was asked for
	slept   atomic.Int64
	looked  chan struct{} // receives once for each look at the clock
}

// asleep is a sleeper on an engine that exports with this problem, if that is not empty.
func asleep(t *testing.T, export func(attempt int64) (problem string)) *sleeper {
	t.Helper()
	s := &sleeper{looked: make(chan struct{})}
	client := engine(t, func(fields []string) (any, string) {
		switch last := fields[len(fields)-1]; last {
		case "exitCode":
			return 0, ""
		case "id":
			return "x", ""
		}
		return "done", export(s.exports.Add(1))
	})
	s.Deployment = Open(client, "dev", &Images{Toolchain: client.Container()}, Access{})
	s.absence.limit = 100 * time.Millisecond
	s.absence.now = func() time.Time {
		now := time.Now().Add(time.Duration(s.slept.Load()))
		select {
		case s.looked <- struct{}{}:
		case <-t.Context().Done():
		}
		return now
	}
	return s
}

// sleep has Notice find that the machine has slept for that long.
func (s *sleeper) sleep(t *testing.T, long time.Duration) (noticed <-chan error, end func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	said := make(chan error, 1)
	go func() { said <- s.Notice(ctx) }()
	<-s.looked
	s.slept.Add(int64(long))
	<-s.looked
	return said, end
}

// TestAnEngineThatHasGivenThisMachineUp: once that is known, nothing waits for what the engine
// will not hand over.
func TestAnEngineThatHasGivenThisMachineUp(t *testing.T) {
	for name, hangs := range map[string]bool{"it says so": false, "it does not answer": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			s := asleep(t, func(int64) string {
				if hangs {
					<-ended
				}
				return givenUp
			})
			t.Cleanup(func() { close(ended) }) // before the engine's end waits for it
			require.NoError(t, s.Absent())
			noticed, end := s.sleep(t, 2*time.Minute)
			defer end()
			err := <-noticed
			require.ErrorIs(t, err, &fault.Fault{Code: CodeSessionEnded})
			why := givenUp
			if hangs {
				why = "a file of no size is not there after 100ms"
			}
			require.Regexp(t, `stood still for 2m[0-9]s, .*`+why+`$`, err.Error())
			require.Equal(t, err, s.Absent())
			require.EqualValues(t, exportTries, s.exports.Load())

			_, failed := s.Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
			require.ErrorIs(t, failed, err)
			require.ErrorIs(t, s.Export(t.Context(), s.client.Directory(), t.TempDir()), err)
			_, failed = s.Exec(t.Context(), Exec{Args: []string{"slipway"}})
			require.NoError(t, failed, "what has no result goes on, such as writing the record")
		})
	}
}

// TestAMachineThatTheEngineKnows: the engine waits for a while, one that slept itself knows of
// nothing, and a network may be late.
func TestAMachineThatTheEngineKnows(t *testing.T) {
	for name, c := range map[string]struct {
		slept   time.Duration
		export  func(attempt int64) string
		exports int64
	}{
		"a short sleep":          {standstill / 2, func(int64) string { return givenUp }, 0},
		"the engine slept, too":  {time.Hour, func(int64) string { return "" }, 1},
		"a network that is late": {time.Hour, func(n int64) string { return map[bool]string{true: "no route to host"}[n < exportTries] }, exportTries},
	} {
		t.Run(name, func(t *testing.T) {
			s := asleep(t, c.export)
			noticed, end := s.sleep(t, c.slept)
			<-s.looked // again, so that it is done with the sleep
			end()
			require.NoError(t, <-noticed)
			require.NoError(t, s.Absent())
			require.Equal(t, c.exports, s.exports.Load())
		})
	}
}
