package console

import (
	"bufio"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnInterruptSaysWhatHappens(t *testing.T) {
	r, w := io.Pipe()
	_, stop, release := Interruptible(t.Context(), w, "stopping the cluster")
	defer release()
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(os.Interrupt))
	said, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "slipway: stopping the cluster; interrupt again to stop at once\n", said)
	<-stop
}
