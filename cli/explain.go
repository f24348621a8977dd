package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/docs"
)

// errorsPage is where people read docs/errors.md.
const errorsPage = "https://github.com/slipway-sh/slipway/blob/main/docs/errors.md"

// explainCommand is `slipway explain`: it shows what docs/errors.md says about a
// code.
func explainCommand(*pflag.FlagSet) func(context.Context, streams, []string) error {
	return func(_ context.Context, io streams, args []string) error {
		if len(args) != 1 {
			return errUsage{errors.New("give one code, as an error shows it")}
		}
		code := strings.ToUpper(args[0])
		entries := explanations()
		if text, ok := entries[code]; ok {
			fmt.Fprintf(io.out, "%s\n\n%s\n", code, text)
			return nil
		}
		return errUsage{fmt.Errorf("there is no code %q; %s", args[0], similar(code, entries))}
	}
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
