package containers

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// TestANodeThatHasEnded is noticed within half a minute, and nothing else is taken for it.
func TestANodeThatHasEnded(t *testing.T) {
	answers := func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 64))
		_, _ = conn.Write([]byte("HTTP/1.0 503"))
		_ = conn.Close()
	}
	refuses := func(conn net.Conn) { _ = conn.Close() }
	slowly := func(conn net.Conn) { time.Sleep(10 * time.Second); _ = conn.Close() } // as the tunnel with a machine that is gone
	hangs := func(conn net.Conn) { time.Sleep(time.Minute); _ = conn.Close() }
	for what, c := range map[string]struct {
		node func(net.Conn) // after a minute; nil: the tunnel is away
		gone bool
	}{
		"it answers":          {answers, false},
		"its process ended":   {refuses, true},
		"its container ended": {slowly, true},
		"it hangs":            {hangs, false},
		"the tunnel is away":  {nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				dial := func(_ context.Context, port int) (net.Conn, error) {
					require.Equal(t, HealthPort, port)
					do := c.node
					if time.Since(began) < time.Minute {
						do = answers
					}
					if do == nil {
						return nil, errors.New("away")
					}
					here, there := net.Pipe()
					go do(there)
					return here, nil
				}
				enough := errors.New("the test is over")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, enough)
				defer cancel()
				err := (&Cluster{name: "demo"}).watch(ctx, dial)
				if !c.gone {
					require.ErrorIs(t, err, enough)
					synctest.Wait()
					time.Sleep(time.Minute) // what hangs ends
					return
				}
				require.ErrorIs(t, err, &fault.Fault{Code: "CTR-009"})
				require.ErrorContains(t, err, "the node of deployment demo has ended")
				require.WithinRange(t, time.Now(), began.Add(time.Minute), began.Add(90*time.Second))
			})
		})
	}
}

// TestANodeThatIsAwayForAMoment stays.
func TestANodeThatIsAwayForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		dial := func(context.Context, int) (net.Conn, error) {
			here, there := net.Pipe()
			away := int(time.Since(began)/(10*time.Second))%2 == 1
			go func() {
				if !away {
					_, _ = there.Read(make([]byte, 64))
					_, _ = there.Write([]byte("x"))
				}
				_ = there.Close()
			}()
			return here, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.ErrorIs(t, (&Cluster{}).watch(ctx, dial), context.DeadlineExceeded)
	})
}

// TestANodeOfAStoppedProgram stays: one that was stopped for minutes, with its machine asleep
// for instance, asks again before it takes a broken connection for the node's end.
func TestANodeOfAStoppedProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		dial := func(context.Context, int) (net.Conn, error) {
			asked++
			broken := asked == 3
			if broken {
				time.Sleep(10 * time.Minute)
			}
			here, there := net.Pipe()
			go func() {
				if !broken {
					_, _ = there.Read(make([]byte, 64))
					_, _ = there.Write([]byte("x"))
				}
				_ = there.Close()
			}()
			return here, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		require.ErrorIs(t, (&Cluster{}).watch(ctx, dial), context.DeadlineExceeded)
		require.GreaterOrEqual(t, time.Since(began), 15*time.Minute)
		require.Greater(t, asked, 100, "it has gone on asking")
	})
}
