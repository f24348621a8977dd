package containers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

const givenUp = "flightcontrol: exceeded retry timeout"

// nearby is a session on an engine in this process.
type nearby struct{ http.Handler }

func (nearby) Host() string { return "engine.invalid" }
func (nearby) Close() error { return nil }

func (n nearby) Do(r *http.Request) (*http.Response, error) {
	answered := make(chan *http.Response, 1)
	go func() {
		w := httptest.NewRecorder()
		n.ServeHTTP(w, r)
		answered <- w.Result()
	}()
	select {
	case answer := <-answered:
		return answer, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// sleeper is a deployment whose machine may sleep.
type sleeper struct {
	*Deployment
	exports atomic.Int64 // that the engine was asked for
	slept   atomic.Int64
}

// asleep is a sleeper on an engine that answers an export with a problem, if that is not empty.
func asleep(t *testing.T, export func(attempt int64) (problem string)) *sleeper {
	t.Helper()
	s := &sleeper{}
	client, err := dagger.Connect(t.Context(), dagger.WithConn(nearby{answering(t, func(fields []string) (any, string) {
		switch fields[len(fields)-1] {
		case "exitCode":
			return 6, ""
		case "stderr":
			return "complaint", ""
		case "id":
			return "x", ""
		}
		return "done", export(s.exports.Add(1))
	})}))
	require.NoError(t, err)
	s.Deployment = Open(client, "dev", &Images{Toolchain: client.Container()}, Access{})
	s.absence.now = func() time.Time { return time.Now().Add(time.Duration(s.slept.Load())) }
	return s
}

// sleep has the machine sleep for that long while Notice waits for it.
func (s *sleeper) sleep(ctx context.Context, long time.Duration) (noticed <-chan error) {
	said := make(chan error, 1)
	go func() { said <- s.Notice(ctx) }()
	synctest.Wait()
	s.slept.Add(int64(long))
	return said
}

// TestAnEngineThatHasGivenThisMachineUp: once that is known, nothing waits for what the engine
// will not hand over.
func TestAnEngineThatHasGivenThisMachineUp(t *testing.T) {
	for name, c := range map[string]struct {
		hangs time.Duration
		after time.Duration // the machine goes on
		why   string
	}{
		"it says so":         {0, (exportTries - 1) * exportLimit, givenUp},
		"it does not answer": {time.Hour, exportTries * exportLimit, "exporting an empty file took longer than 20s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(2 * time.Hour) // what hangs ends
				s := asleep(t, func(int64) string {
					time.Sleep(c.hangs)
					return givenUp
				})
				require.NoError(t, s.Absent())
				went := time.Now()
				err := <-s.sleep(t.Context(), 2*time.Minute)
				require.ErrorIs(t, err, &fault.Fault{Code: CodeSessionEnded})
				require.ErrorContains(t, err, "stood still for 2m1s, ")
				require.Regexp(t, c.why+`$`, err.Error())
				require.Equal(t, time.Second+c.after, time.Since(went))
				require.Equal(t, err, s.Absent())
				require.EqualValues(t, exportTries, s.exports.Load())

				_, failed := s.Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
				require.ErrorIs(t, failed, err)
				require.ErrorIs(t, s.Export(t.Context(), s.client.Directory(), t.TempDir()), err)
				_, failed = s.Exec(t.Context(), Exec{Args: []string{"slipway"}})
				require.NoError(t, failed, "what has no result goes on, such as writing the record")
			})
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
		"a short sleep":         {standstill / 2, func(int64) string { return givenUp }, 0},
		"the engine slept, too": {time.Hour, func(int64) string { return "" }, 1},
		"a network that is late": {time.Hour, func(attempt int64) string {
			if attempt < exportTries {
				time.Sleep(time.Hour)
			}
			return ""
		}, exportTries},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(2 * time.Hour) // what hangs ends
				s := asleep(t, c.export)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				require.NoError(t, <-s.sleep(ctx, c.slept))
				require.NoError(t, s.Absent())
				require.Equal(t, c.exports, s.exports.Load())
			})
		})
	}
}
