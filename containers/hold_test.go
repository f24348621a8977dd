package containers

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestTheFaultOfALockThatIsHeld(t *testing.T) {
	told := &fault.Fault{Code: "LOK-001", Class: fault.Locked, Op: "take the lock", Fix: "wait", Err: errors.New("a@b has it")}
	text, err := json.Marshal(told)
	require.NoError(t, err)
	got := notHeld(errors.New("start service: exit code: 6\nstderr:\nnoise\n" + FaultLine + string(text) + "\n[traceparent:00]"))
	require.ErrorIs(t, got, &fault.Fault{Code: "LOK-001"})
	require.Equal(t, fault.Locked, fault.ClassOf(got))
	require.ErrorContains(t, got, "a@b has it")

	for _, silent := range []string{"start service: exit code: 137", FaultLine + "{"} {
		got = notHeld(errors.New(silent))
		require.ErrorIs(t, got, &fault.Fault{Code: codeLost})
		require.ErrorContains(t, got, silent)
	}
}
