package source

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// TestAnInterruptionLeavesStandardInput, on which nothing may ever come.
func TestAnInterruptionLeavesStandardInput(t *testing.T) {
	silent, w := io.Pipe()
	defer func() { _ = w.Close() }()
	stop := make(chan struct{})
	text, err := Contents("-", console.Streams{In: strings.NewReader("a: b"), Stop: stop})
	require.NoError(t, err)
	require.Equal(t, "a: b", string(text))

	close(stop)
	_, err = Contents("-", console.Streams{In: silent, Stop: stop})
	require.ErrorIs(t, err, &fault.Fault{Code: pipeline.CodeCancelled})
	require.Equal(t, fault.Cancelled, fault.ClassOf(err))
}
