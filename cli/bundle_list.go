package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/containers/bundle"
)

type bundleListOptions struct{ format format }

func newBundleList() *cobra.Command {
	var o bundleListOptions
	cmd := &cobra.Command{
		Use: "list DIR", Short: "List the tools, manifests and images of a bundle", Example: `  slipway bundle list "$SLIPWAY_BUNDLE"`,
		Args: takes(1, 1, "give the directory of one bundle"), RunE: atOnce(o.run),
	}
	o.format.addFlag(cmd.Flags())
	return cmd
}

func (o *bundleListOptions) run(_ context.Context, streams console.Streams, args []string) error {
	b, err := bundle.Read(args[0])
	if err != nil {
		return err
	}
	return o.format.print(streams.Out, b.Index, func(w io.Writer) error { return listBundle(w, b.Index) })
}

// listBundle prints a line per tool, manifest and image, and one more for each further
// reference that an image stands for.
func listBundle(w io.Writer, x bundle.Index) error {
	fmt.Fprintf(w, "for %s\n\n", x.Platform)
	table := newTable(w)
	fmt.Fprintln(table, "KIND\tNAME\tVERSION\tDIGEST\tSTANDS FOR")
	for _, kind := range []bundle.Kind{bundle.Tool, bundle.Manifest} {
		for _, f := range x.Files {
			if f.Kind == kind {
				fmt.Fprintf(table, "%s\t%s\t%s\tsha256:%s…\t\n", kind, f.Name, f.Version, f.SHA256[:12])
			}
		}
	}
	for _, i := range x.Images {
		kind, name, version := "image", i.Name, i.Ref[strings.LastIndexByte(i.Ref, ':')+1:]
		if i.Added() { // it has no short name
			kind, name, version = "added", "-", "-"
		}
		first, rest := "", i.StandsFor
		if len(rest) > 0 {
			first, rest = rest[0], rest[1:]
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s…\t%s\n", kind, name, version, i.Digest[:19], first)
		for _, s := range rest {
			fmt.Fprintf(table, "\t\t\t\t%s\n", s)
		}
	}
	return table.Flush()
}
