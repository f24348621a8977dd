package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestFlagsAreFewAndSayWhatTheyDo: how many people have to know, and how much text each has.
func TestFlagsAreFewAndSayWhatTheyDo(t *testing.T) {
	root, names := tree(t), map[string]bool{}
	look := func(c *cobra.Command) {
		require.True(t, c.HasSubCommands() || c.Example != "", "%s has no example", c.CommandPath())
		c.InitDefaultHelpFlag()
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if f.Hidden {
					return
				}
				names[f.Name] = true
				require.NotEmpty(t, f.Usage, "%s --%s", c.CommandPath(), f.Name)
				require.LessOrEqual(t, len(f.Usage), 90, "%s --%s: %s", c.CommandPath(), f.Name, f.Usage)
			})
		}
	}
	look(root)
	every(root, look)
	require.LessOrEqual(t, len(names), 60, strings.Join(slices.Sorted(maps.Keys(names)), " "))
	require.Greater(t, len(names), 40)
}

// TestFlagsOfManyCommandsAreBelowHeadings, after a command's own.
func TestFlagsOfManyCommandsAreBelowHeadings(t *testing.T) {
	code, help, errs := slipway("install", "--help")
	require.Zero(t, code, errs)
	requireOrder(t, help, "\nFlags:\n", "--until", "\nRun:\n", "--take-ownership", "\nDeployment:\n", "--config", "--platform", "\nImages and trust:\n", "--bundle", "--registry-auth")
}
