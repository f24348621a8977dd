package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
)

func TestListedDeployments(t *testing.T) {
	now := time.Date(2026, 1, 4, 3, 4, 5, 0, time.UTC)
	var out strings.Builder
	require.NoError(t, listDeployments(&out, []contract.DeploymentSummary{
		{Deployment: "blue", Release: "shop", Installed: "1.0.0", State: contract.Success, Run: "r1", Workflow: "install", Created: now.Add(-49 * time.Hour)},
		{Deployment: "green", State: contract.NotStarted, Created: now.Add(-95 * time.Second)},
		{Deployment: "torn", Problem: "it is\n\x1b[2Jdamaged"},
	}, now))
	require.Equal(t, `NAME   RELEASE     STATE       LAST RUN    AGE
blue   shop 1.0.0  Success     install r1  2d
green  -           NotStarted  -           1m35s
torn   not usable: it is damaged
`, out.String())

	out.Reset()
	require.NoError(t, listDeployments(&out, nil, now))
	require.Equal(t, "there is no deployment\n", out.String())
}
