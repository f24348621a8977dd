package infrastructure

import (
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/stretchr/testify/require"
)

// What a plan leaves open before the first run is named, and not called empty.
func TestOutputsOfWhatIsNotMadeYet(t *testing.T) {
	plan := &tfjson.Plan{OutputChanges: map[string]*tfjson.Change{
		"database":      {After: map[string]any{"kind": "in-cluster"}, AfterUnknown: false},
		"storage_class": {AfterUnknown: true},
		"api_endpoint":  {AfterUnknown: map[string]any{"url": true}},
	}}
	require.Equal(t, []string{"api_endpoint", "storage_class"}, unmade(plan))
	require.Empty(t, unmade(&tfjson.Plan{}))
}
