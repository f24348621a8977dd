package cli

import (
	"context"
	"fmt"
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
		Use: "explain CODE", Short: "Explain an error code and its remedy", Example: "  slipway explain " + fault.Quote(string(conductor.CodeNotThere)), Args: takes(1, 1, "give one code, as an error shows it"), RunE: atOnce(explain),
		ValidArgsFunction: once(errorCodes()),
	}
}

func explain(_ context.Context, io console.Streams, args []string) error {
	code := strings.ToUpper(args[0])
	entries := explanations()
	if text, ok := entries[code]; ok {
		fmt.Fprintf(io.Out, "%s\n\n%s\n", code, text)
		return nil
	}
	return usage.Errorf("there is no code %q; %s", args[0], similar(code, entries))
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

// similar names the codes with the prefix of one that does not exist, else the
// prefixes that there are.
func similar(code string, entries map[string]string) string {
	prefix, _, _ := strings.Cut(code, "-")
	var codes, prefixes []string
	for c := range entries {
		p, _, _ := strings.Cut(c, "-")
		if p == prefix {
			codes = append(codes, c)
		}
		prefixes = append(prefixes, p)
	}
	if len(codes) > 0 {
		slices.Sort(codes)
		return "there are " + strings.Join(codes, ", ")
	}
	slices.Sort(prefixes)
	return "codes begin with " + strings.Join(slices.Compact(prefixes), ", ")
}
