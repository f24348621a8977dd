package conductor

import (
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
	err := freePorts(t.Context(), "local", "127.0.0.1", []int{other, taken})
	require.ErrorIs(t, err, &fault.Fault{Code: codePorts})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "address already in use")
	require.ErrorContains(t, err, strconv.Itoa(taken))
	require.NotContains(t, err.Error(), strconv.Itoa(other))
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "; or choose other ports, or another address of this machine, in section local of the configuration; ports below 1024 may need root; an install without --keep-cluster, or with --unpublished, needs no port")
}
