package conductor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// TestWhatIsOnlyOnTheVolumes is told of a first install, in one warning.
func TestWhatIsOnlyOnTheVolumes(t *testing.T) {
	warned := func(c *Conductor, opened string) []report.Warning {
		t.Helper()
		c.opts.ReleaseDir = c.opts.Client.Directory()
		c, err := New(c.opts)
		require.NoError(t, err)
		record, err := c.Conduct(t.Context(), installing(config.Install))
		require.NoError(t, err, opened)
		return record.Warnings
	}
	answers := func(opened string) map[string]any {
		return map[string]any{
			`"slipway","state","open"`: opened, `"slipway","state","keep"`: "{}",
			`"step","preorchestrator/requires"`: `{"status":"succeeded","output":{}}`,
		}
	}
	for says, change := range map[string]func(*Conductor){
		"the state of deployment slipway is only on a volume of this Dagger engine, as its cluster is": func(*Conductor) {},
		"the key of the secrets of deployment slipway is only on a volume of this Dagger engine":       func(c *Conductor) { c.opts.State.URL = "s3://bucket" },
		"": func(c *Conductor) {
			c.opts.State.URL, c.opts.State.Key = "s3://bucket", c.opts.Client.SetSecret("key", "x")
		},
	} {
		c, _ := conducted(t, answers(`{"first":true}`))
		change(c)
		got := warned(c, says)
		if says == "" {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		require.Contains(t, got[0].Summary, says)
		require.NotEmpty(t, got[0].Fix)
	}
	c, _ := conducted(t, answers(`{}`))
	require.Empty(t, warned(c, "it was said"))

	c, _, _ = there(t, nil, nil)
	text, _ := c.onlyOnVolumes()
	require.Contains(t, text, "the next install needs --take-ownership")
	c.inBucket = true
	text, _ = c.onlyOnVolumes()
	require.Empty(t, text)
}
