package stages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
)

// withData has data of a component that is on, and of one that is off.
const withData = components + `
data:
  - {name: rows, component: database, pod: pod.yaml, scratch: pod.yaml, dump: [a], restore: [b], check: [c]}
  - {name: words, component: "off", pod: pod.yaml, scratch: pod.yaml, dump: [a], restore: [b], check: [c]}
`

// TestDataComesFirstAndLast: nothing of the platform is touched before its data is backed up
// and migrated, and nothing is removed or said to be installed before it is checked.
func TestDataComesFirstAndLast(t *testing.T) {
	r := load(t, withData)
	g := graph(t, stages.Upgrade(), local.Provider{}, r, nil)
	require.Equal(t, []string{"infrastructure/ownership"}, g["preorchestrator/backup-rows"])
	require.NotContains(t, g, "preorchestrator/backup-words", "its component is off")
	require.Equal(t, []string{"infrastructure/ownership", "preorchestrator/backup-rows"}, g["preorchestrator/backup"])
	require.Equal(t, []string{"preorchestrator/backup"}, g["preorchestrator/migrate-before"])
	require.Equal(t, []string{"preorchestrator/migrate-before"}, g["preorchestrator/namespaces"])
	require.Subset(t, g["orchestrator/migrate-after"], []string{"orchestrator/console", "orchestrator/database", "orchestrator/seen"})
	require.Contains(t, g["orchestrator/prune"], "orchestrator/migrate-after")
	require.Contains(t, g["postorchestrator/access"], "orchestrator/migrate-after")

	back := graph(t, stages.Rollback(), local.Provider{}, r, nil)
	require.Equal(t, []string{"infrastructure/ownership"}, back["preorchestrator/restore"])
	require.Equal(t, []string{"preorchestrator/restore"}, back["preorchestrator/namespaces"])
	require.Subset(t, back["orchestrator/data-check"], []string{"orchestrator/console", "orchestrator/database", "orchestrator/seen"})
	require.Contains(t, back["orchestrator/prune"], "orchestrator/data-check")
	require.Contains(t, back["postorchestrator/access"], "orchestrator/data-check")

	install := graph(t, stages.Install(), local.Provider{}, r, nil)
	require.Equal(t, []string{"infrastructure/ownership"}, install["preorchestrator/namespaces"])
	for name := range install {
		require.NotRegexp(t, "backup|migrate|restore|check$", name)
	}
}
