package docs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/engineconfig"
)

func TestThePageHasTheConfigurationOfTheEngine(t *testing.T) {
	page, err := os.ReadFile("state.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```json\n"+engineconfig.Text+"\n```\n")
}
