package docs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/daggercli"
)

func TestThePageHasTheConfigurationOfTheEngine(t *testing.T) {
	page, err := os.ReadFile("state.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```json\n"+daggercli.EngineConfig+"\n```\n")
}
