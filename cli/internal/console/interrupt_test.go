package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// TestTheThirdInterruptEndsWhateverRuns, also where nothing listens to the context.
func TestTheThirdInterruptEndsWhateverRuns(t *testing.T) {
	const busy = "SLIPWAY_TEST_BUSY"
	if os.Getenv(busy) != "" {
		ctx, _, _ := Interruptible(context.Background(), os.Stdout, "stopping")
		fmt.Println("busy")
		<-ctx.Done()
		fmt.Println("cancelled")
		select {}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), busy+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	for _, want := range []string{"busy", "slipway: stopping; interrupt again to stop at once", "cancelled"} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\n", line)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
	}
	require.ErrorContains(t, cmd.Wait(), "signal: interrupt")
}
