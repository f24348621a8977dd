package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/lock"
)

func newVersion(p *Program) *cobra.Command {
	var as console.Format
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version and what the program is made of", Example: `  slipway version --output json`, Args: usage.NoArgs,
		RunE: console.AtOnce(func(_ context.Context, io console.Streams, _ []string) error {
			c, err := compositionOf(p)
			if err != nil {
				return err
			}
			return as.Print(io.Out, c, c.text)
		}),
	}
	as.AddFlag(cmd.Flags())
	return cmd
}

// composition is what a program is made of, and what it pins.
type composition struct {
	Version string      `json:"version"`
	Sources string      `json:"sources,omitempty"` // Program.Source
	Pins    string      `json:"pins"`              // lock.Lock.Digest
	Go      string      `json:"go"`
	System  string      `json:"system"`           // "linux/amd64"
	Dagger  string      `json:"dagger,omitempty"` // version of the engine and of the SDK
	Tools   []versioned `json:"tools"`
	Images  []versioned `json:"images"`
}

type versioned struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (v versioned) String() string {
	if v.Name == "node" {
		return "node " + v.Version + " (Kubernetes)"
	}
	return v.Name + " " + v.Version
}

func compositionOf(p *Program) (c composition, err error) {
	pins, err := lock.Load()
	if err != nil {
		return c, err
	}
	c = composition{Version: p.Version, Sources: p.Source, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	c.Pins, err = pins.Digest()
	if build, ok := debug.ReadBuildInfo(); ok {
		if at := slices.IndexFunc(build.Deps, func(m *debug.Module) bool { return m.Path == "dagger.io/dagger" }); at >= 0 {
			c.Dagger = build.Deps[at].Version
		}
	}
	for _, t := range pins.Tools {
		c.Tools = append(c.Tools, versioned{t.Name, t.Version})
	}
	for _, i := range pins.Images {
		c.Images = append(c.Images, versioned{i.Name, i.Version})
	}
	return c, err
}

// text begins with the line that is all of --version.
func (c composition) text(w io.Writer) error {
	if _, err := fmt.Fprintln(w, "slipway "+c.Version); err != nil {
		return err
	}
	table := console.NewTable(w)
	list := func(all []versioned) string {
		var texts []string
		for _, v := range all {
			texts = append(texts, v.String())
		}
		return strings.Join(texts, ", ")
	}
	for _, row := range [][2]string{
		{"sources", cmp.Or(c.Sources, "unknown: make did not build it")}, {"pins", c.Pins}, {"go", c.Go + " " + c.System},
		{"dagger", cmp.Or(c.Dagger, "unknown")}, {"tools", list(c.Tools)}, {"images", list(c.Images)},
	} {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	return table.Flush()
}
