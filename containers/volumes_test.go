package containers

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/engineconfig"
)

func TestAnEngineThatKeepsVolumesIsRecognised(t *testing.T) {
	limits := func(reserved, most, free int) func(string) (any, string) {
		return func(field string) (any, string) {
			return map[string]any{"name": "0123456789ab", "reservedSpace": reserved, "maxUsedSpace": most, "minFreeSpace": free}[field], ""
		}
	}
	for name, c := range map[string]struct {
		answer func(field string) (any, string)
		kept   bool
		why    string
	}{
		"of make engine":            {func(string) (any, string) { return engineconfig.Own, "" }, true, ""},
		"configured":                {limits(engineconfig.Reserved, 100<<30, 0), true, ""},
		"Dagger's default":          {limits(10_000_000_000, 75<<30, 20<<30), false, "9.3 GiB reserved, 75.0 GiB used at most, 20.0 GiB free"},
		"prunes at once":            {limits(0, 1, 0), false, "1 bytes used at most"},
		"no limits":                 {limits(0, 0, 0), false, "it collects nothing, or everything"},
		"within a module":           {deaf("only the main client can call this function"), false, "from within dagger call"},
		"one that does not know":    {deaf(`Cannot query field "localCache" on type "Engine".`), false, "does not say"},
		"one without a name either": {func(string) (any, string) { return nil, "no" }, false, "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			client := engine(t, func(fields []string) (any, string) { return c.answer(fields[len(fields)-1]) })
			got, err := VolumesOf(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, c.kept, got.Kept)
			require.Contains(t, got.Why, c.why)
			require.Equal(t, c.kept, got.Why == "")
			require.Equal(t, name == "within a module", got.Untold)
		})
	}
	client := engine(t, func([]string) (any, string) { return nil, "gone" })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	_, err := VolumesOf(ctx, client)
	require.EqualError(t, err, "interrupted")
}

// deaf is an engine that has a name and answers nothing else.
func deaf(problem string) func(string) (any, string) {
	return func(field string) (any, string) {
		if field == "name" {
			return "0123456789ab", ""
		}
		return nil, problem
	}
}
