package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/fault"
)

func newVersion(p *Program) *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version and what the program is made of", Example: `  slipway version --output json`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			c, err := p.composition()
			if err != nil {
				return err
			}
			return as.print(io.Out, c, c.text)
		}),
	}
	as.addFlag(cmd.Flags())
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

func (p *Program) composition() (c composition, err error) {
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
	table := newTable(w)
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

func newLockVerify(p *Program) *cobra.Command {
	var dir string
	var t images.Trust
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that program, tools and images are those of the lock file", Example: `  slipway lock verify`, Args: noArgs,
		RunE: atOnce(func(ctx context.Context, io console.Streams, _ []string) error { return p.verifyLock(ctx, io, dir, &t) }),
		Long: `Prove that this machine runs what the lock in this program pins:

- the bundle has the --bundle-digest, or a signature by --bundle-key or --certificate-identity
- this program and the bundle's are compiled from the same sources
- every file of the bundle has the sha256 of its index
- tools and manifests have the pinned versions and origins
- every image has the digests of the index, down to each layer
- every Debian package in the images has the pinned version

It names everything that differs. The last line, "lock sha256:…", is the same wherever all of this
is the same; reports have it, too. docs/lock.md says what it covers.`,
	}
	images.AddBundle(cmd.Flags(), &dir)
	t.AddFlags(cmd.Flags())
	return cmd
}

// codeProgram: this program is not the bundle's, or its sources are unknown.
const codeProgram fault.Code = "LCK-006"

func (p *Program) verifyLock(ctx context.Context, io console.Streams, dir string, t *images.Trust) error {
	if dir == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	b, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	vouched, unknown := t.Check(ctx, b)
	damaged := b.Verify(ctx)
	contents, other := ociarchive.Packages(ctx, b)
	if other == nil {
		other = pins.VerifyPackages(b.Platform, contents)
	}
	if err := together(unknown, p.same(b), damaged, pins.Verify(b), other); err != nil {
		return err
	}
	line, err := lock.LineOf(pins, b.Index)
	if err != nil {
		return err
	}
	packages := map[string]bool{}
	for _, of := range contents {
		for name := range of {
			packages[name] = true
		}
	}
	pinned := "as pinned"
	if len(pins.Packages[b.Platform]) == 0 {
		pinned = "not pinned for " + b.Platform
	}
	_, err = fmt.Fprintf(io.Text(), "program: sources %s, as the bundle's\nbundle: %s, %s\n%d files for %s, %d images, by digest\nDebian packages: %d, %s\nlock %s\n",
		p.Source, vouched.Digest, vouched.By, len(b.Files), b.Platform, len(b.Index.Images), len(packages), pinned, line)
	return err
}

// same compares the sources of this program with those of the one in the bundle.
func (p *Program) same(b *bundle.Bundle) error {
	tool, ok := b.Tool("slipway")
	f := &fault.Fault{Code: codeProgram, Class: fault.Preflight, Op: "compare this program with the bundle's"}
	want := strings.TrimPrefix(tool.Origin, "source:")
	switch {
	case !ok:
		f.Err, f.Fix = errors.New("the bundle has none"), bundle.Fix
	case p.Source == want && want != "":
		return nil
	case p.Source == "":
		f.Err = errors.New("this program does not know its sources")
		f.Fix = "run the bundle's own, or one that make build has built"
	default:
		f.Err = fmt.Errorf("its sources are %s, those of the bundle's program %s", p.Source, want)
		f.Fix = "run the bundle's own, or build both from one checkout: make build bundle"
	}
	return f
}

func newClients() *cobra.Command {
	var out, dir string
	var t images.Trust
	cmd := &cobra.Command{
		Use: "clients --out DIR", Short: "Copy the pinned kubectl, helm, terraform and slipway out of a bundle to a folder", Example: `  slipway clients --out bin`, Args: noArgs,
		RunE: atOnce(func(ctx context.Context, io console.Streams, _ []string) error {
			return putClients(ctx, io, out, dir, &t)
		}),
		Long: `Copy the pinned kubectl, helm, terraform and slipway for this machine from a bundle to a folder, for
its PATH. It replaces no other program under one of these names.`,
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&out, "out", "", "folder to write them to")
	images.AddBundle(cmd.Flags(), &dir)
	t.AddFlags(cmd.Flags())
	return cmd
}

func putClients(ctx context.Context, io console.Streams, out, from string, t *images.Trust) error {
	if out == "" {
		return usage.Errorf("clients needs --out DIR")
	}
	if from == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	b, err := bundle.Read(from)
	if err != nil {
		return err
	}
	v, err := t.Check(ctx, b)
	if err != nil {
		return err
	}
	if w := v.Warning(); w != "" {
		fmt.Fprintln(io.Err, "warning: "+w)
	}
	done, err := b.PutClients(ctx, out, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	w := newTable(io.Text())
	for _, c := range done {
		origin := "from the bundle"
		if c.There {
			origin = "there already"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Version, origin)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	dir, err := filepath.Abs(out)
	if err == nil {
		_, err = fmt.Fprintf(io.Out, "\nNext:\n  export PATH=%s:\"$PATH\"\n", fault.Quote(dir))
	}
	return err
}
