package containers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

func TestComplaint(t *testing.T) {
	require.Equal(t, "no run yet", Complaint("12:00 connecting\n\nerror DEP-001: no run yet\n  remedy: install first\n  more:   https://example.org/#dep-001\n"))
	require.Equal(t, "read it: no: space", Complaint("error RUN-003: read it: no: space"))
	require.Equal(t, "cp: no such file", Complaint("cp: no such file\n"))
}

// Code and remedy of a damaged bundle are printed once: by whoever asked.
func TestADamagedBundleIsToldOfOnce(t *testing.T) {
	err := notVerified("\nerror BUN-003: verify the bundle /bundle: images/node.tar is missing; bin/helm has 3 bytes, the index says 4\n" +
		"  remedy: build the bundle anew: make bundle\n  more:   https://example.org/#bun-003\n")
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.EqualError(t, err, "verify the bundle: images/node.tar is missing; bin/helm has 3 bytes, the index says 4")
}
