package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/docs"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// errorsPage is where people read docs/errors.md.
const errorsPage = "https://github.com/slipway-sh/slipway/blob/main/docs/errors.md"

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain CODE", Short: "Explain an error code and its remedy", Example: "  slipway explain " + fault.Quote(string(conductor.CodeNotThere)),
		Args: takes(1, 1, "give one code, as an error shows it"), RunE: atOnce(explain),
	}
}

func explain(_ context.Context, io console.Streams, args []string) error {
	code := strings.ToUpper(args[0])
	entries := explanations()
	if text, ok := entries[code]; ok {
		fmt.Fprintf(io.Out, "%s\n\n%s\n", code, text)
		return nil
	}
	prefix, _, _ := strings.Cut(code, "-")
	alike := slices.Sorted(maps.Keys(entries))
	alike = slices.DeleteFunc(alike, func(c string) bool { return !strings.HasPrefix(c, prefix+"-") })
	return usage.Errorf("there is no code %q; there are %s; all codes: %s", args[0], cmp.Or(strings.Join(alike, ", "), "none like it"), errorsPage)
}

// explanations are the entries of docs/errors.md by code.
func explanations() map[string]string {
	out := map[string]string{}
	for _, area := range docs.Errors() {
		for _, c := range area.Codes {
			out[string(c.Code)] = strings.TrimSpace(c.Text())
		}
	}
	return out
}
