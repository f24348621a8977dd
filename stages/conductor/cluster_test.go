package conductor

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// listen is a port of this machine on which somebody listens.
func listen(t *testing.T) (int, net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp4", ":0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port, l
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	taken, _ := listen(t)
	other, l := listen(t)
	require.NoError(t, l.Close())
	err := freePorts(t.Context(), "local", []int{other, taken})
	require.ErrorIs(t, err, &fault.Fault{Code: codePorts})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "address already in use")
	require.ErrorContains(t, err, strconv.Itoa(taken))
	require.NotContains(t, err.Error(), strconv.Itoa(other))
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "; or choose other ports in section local of the configuration; ports below 1024 may need root; an install without --keep-cluster needs no port")
}

// The user is told that the cluster is ready when its ports are published, and
// not when they never are.
func TestReadyIsSaidOncePortsArePublished(t *testing.T) {
	port, l := listen(t)
	require.NoError(t, l.Close())
	ctx, cancel := context.WithCancel(t.Context())
	begun, open := make(chan struct{}), false
	up := func(ctx context.Context) error {
		close(begun)
		l, err := net.Listen("tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		open = true
		<-ctx.Done()
		return errors.Join(ctx.Err(), l.Close())
	}
	err := published(ctx, []int{port}, up, func() {
		<-begun
		cancel()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, open)

	broken := errors.New("the tunnel broke")
	err = published(t.Context(), []int{port}, func(context.Context) error { return broken }, func() { t.Error("ready") })
	require.ErrorIs(t, err, broken)
}
