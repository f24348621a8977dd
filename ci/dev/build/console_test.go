package build_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/fault"
)

func TestExit(t *testing.T) {
	require.Zero(t, build.Exit(t.Context(), io.Discard, nil))
	missing := &fault.Fault{Code: "BUN-001", Class: fault.Preflight, Op: "read the bundle", Fix: "make bundle", Err: errors.New("there is none")}
	var output bytes.Buffer
	require.Equal(t, 3, build.Exit(t.Context(), &output, missing))
	require.Equal(t, "error BUN-001: read the bundle: there is none\n  remedy: make bundle\n", output.String())
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Equal(t, 7, build.Exit(stopped, io.Discard, missing))
}
