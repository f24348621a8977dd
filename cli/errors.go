package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/docs"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

// complain prints err with code and remedy, without control sequences, and returns the exit code of the first.
func complain(w io.Writer, name string, line usage.Line, err error) int {
	if err == nil {
		return int(fault.OK)
	}
	if code, ok := errors.AsType[console.Exit](err); ok {
		return int(code)
	}
	if all, ok := errors.AsType[console.Several](err); ok {
		first := complain(w, name, line, all[0])
		for _, e := range all[1:] {
			complain(w, name, line, e)
		}
		return first
	}
	if u, ok := errors.AsType[usage.Error](err); ok {
		fmt.Fprintf(w, "%s: %s\nSee %s --help.\n", name, redact.Printable(u.Error()), name)
		return int(fault.Usage)
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		f = &fault.Fault{Code: fault.CodeBug, Class: fault.Bug, Err: err, Fix: "report this with the output above"}
	}
	fmt.Fprintf(w, "\nerror %s: %s\n", f.Code, redact.Printable(err.Error()))
	if f.Fix != "" {
		fmt.Fprintf(w, "  remedy: %s\n", redact.Printable(line.Remedy(f.Fix)))
	}
	if f.Log != "" {
		command := line.Command("report")
		if usage.InModule() {
			command = line.Function("report")
		}
		fmt.Fprintf(w, "  log:    %s in the run's report: %s\n", f.Log, command)
	}
	if _, known := explanations()[string(f.Code)]; known {
		fmt.Fprintf(w, "  more:   %s#%s\n", errorsPage, strings.ToLower(string(f.Code)))
	}
	return int(f.Class)
}

const errorsPage = "https://github.com/slipway-sh/slipway/blob/main/docs/errors.md"

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain CODE", Short: "Explain an error code and its remedy", Example: "  slipway explain " + fault.Quote(string(contract.CodeNotThere)),
		Args: usage.Takes(1, 1, "give one code, as an error shows it"), RunE: console.AtOnce(explain),
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

// explanations are the entries of docs/errors.yaml by code.
func explanations() map[string]string {
	out := map[string]string{}
	for _, area := range docs.Errors() {
		for _, c := range area.Codes {
			out[string(c.Code)] = strings.TrimSpace(c.Text())
		}
	}
	return out
}
