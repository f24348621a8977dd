package containers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// sleeper is a deployment on an engine that exports or does not, and what has the machine sleep.
func sleeper(t *testing.T, exports string) (d *Deployment, sleep func(time.Duration)) {
	t.Helper()
	client := engine(t, func(fields []string) (any, string) {
		switch last := fields[len(fields)-1]; last {
		case "exitCode":
			return 0, ""
		case "id":
			return "x", ""
		}
		return "done", exports
	})
	d = Open(client, "dev", &Images{Toolchain: client.Container()}, Access{})
	var slept atomic.Int64
	d.absence.now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
	return d, func(long time.Duration) { slept.Add(int64(long)) }
}

// TestAnEngineThatHasGivenThisMachineUp: once that is known, nothing waits for what the engine
// will not hand over.
func TestAnEngineThatHasGivenThisMachineUp(t *testing.T) {
	d, sleep := sleeper(t, "flightcontrol: exceeded retry timeout")
	noticed := make(chan error, 1)
	go func() { noticed <- d.Notice(t.Context()) }()
	require.NoError(t, d.Absent())
	time.Sleep(1500 * time.Millisecond) // it has looked at the clock
	sleep(2 * time.Minute)
	err := <-noticed
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSessionEnded})
	require.Regexp(t, `stood still for 2m[0-9]s, .*exceeded retry timeout`, err.Error())
	require.Equal(t, err, d.Absent())

	_, failed := d.Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
	require.ErrorIs(t, failed, err)
	require.ErrorIs(t, d.Export(t.Context(), d.client.Directory(), t.TempDir()), err)
	_, failed = d.Exec(t.Context(), Exec{Args: []string{"slipway"}})
	require.NoError(t, failed, "what has no result goes on, such as writing the record")
}

// TestAShortSleepIsNone: the engine waits for a while, and one that slept itself knows of nothing.
func TestAShortSleepIsNone(t *testing.T) {
	for what, c := range map[string]struct {
		exports string
		slept   time.Duration
	}{
		"short":           {"flightcontrol: exceeded retry timeout", standstill / 2},
		"with the engine": {"", time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			d, sleep := sleeper(t, c.exports)
			ctx, end := context.WithTimeout(t.Context(), 4*time.Second)
			defer end()
			time.AfterFunc(1500*time.Millisecond, func() { sleep(c.slept) })
			require.NoError(t, d.Notice(ctx))
			require.NoError(t, d.Absent())
			require.False(t, errors.Is(d.Export(t.Context(), d.client.Directory(), t.TempDir()), &fault.Fault{Code: CodeSessionEnded}))
		})
	}
}
