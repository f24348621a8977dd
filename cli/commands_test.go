package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestCommandsDescribesWhatHelpShows: the man pages of a release have each command that is not
// hidden, with its flags.
func TestCommandsDescribesWhatHelpShows(t *testing.T) {
	code, out, errs := slipway("commands")
	require.Zero(t, code, errs)
	var root describedCommand
	require.NoError(t, json.Unmarshal([]byte(out), &root))
	require.Contains(t, root.Long, "Exit codes: 0 ok")
	all := map[string]describedCommand{}
	var visit func(path string, c describedCommand)
	visit = func(path string, c describedCommand) {
		path = strings.TrimSpace(path + " " + strings.Fields(c.Use)[0])
		all[path] = c
		for _, sub := range c.Commands {
			visit(path, sub)
		}
	}
	visit("", root)
	for _, name := range []string{"slipway commands", "slipway step", "slipway state"} {
		require.NotContains(t, all, name, "it is hidden")
	}
	require.Contains(t, all, "slipway completion bash")
	every(tree(t), func(c *cobra.Command) {
		d, ok := all[c.CommandPath()]
		require.True(t, ok, c.CommandPath())
		require.Equal(t, c.Use+c.Short+c.Long+c.Example, d.Use+d.Short+d.Long+d.Example)
		flags := map[string]describedFlag{}
		for _, f := range append(d.Flags, d.Shared...) {
			require.NotContains(t, flags, f.Name, c.CommandPath())
			flags[f.Name] = f
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				want := describedFlag{f.Name, f.Shorthand, f.Usage, f.Value.Type(), f.DefValue, f.NoOptDefVal}
				require.Equal(t, want, flags[f.Name], c.CommandPath())
				delete(flags, f.Name)
			}
		})
		require.Empty(t, flags, c.CommandPath())
	})
}
