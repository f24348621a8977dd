package containers

import (
	"context"
	"fmt"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestAVolumeInUseIsLocked(t *testing.T) {
	says := "slipway-node: lock /var/lib/slipway-node/lock: another node uses this volume: a pid 7 since now; waited 30s\n"
	for what, c := range map[string]struct {
		err   error
		class fault.Class
		says  string
	}{
		"in use":   {&dagger.ExecError{ExitCode: 1, Stderr: says}, fault.Locked, "another node uses this volume: a pid 7"},
		"broken":   {&dagger.ExecError{ExitCode: 1, Stderr: "slipway-node: wipe: read-only file system\n"}, fault.Step, "exit status 1: slipway-node: wipe: read-only"},
		"too slow": {fmt.Errorf("sync: %w", context.DeadlineExceeded), fault.Timeout, "deadline exceeded"},
	} {
		t.Run(what, func(t *testing.T) {
			err := notWiped(c.err)
			require.ErrorIs(t, err, &fault.Fault{Code: "CTR-004"})
			require.Equal(t, c.class, fault.ClassOf(err))
			require.ErrorContains(t, err, c.says)
		})
	}
}
