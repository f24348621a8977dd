package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A cluster that an earlier version installed is still ours.
func TestDeploymentOf(t *testing.T) {
	require.Equal(t, "blue", DeploymentOf(Labels("blue")))
	require.Equal(t, "blue", DeploymentOf(map[string]string{"slipway.dev/deployment": "blue"}))
	require.Empty(t, DeploymentOf(map[string]string{"team": "blue"}))
}
