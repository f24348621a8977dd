package cli

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Flags that so many commands have, with the same text, are described once; those that so many
// have are together the flags of a deployment.
const (
	severalCommands = 3
	mostCommands    = 12
)

// TestReference: docs/cli.md is what the commands say of themselves, and docs/dagger.md what the
// functions of the module do.
func TestReference(t *testing.T) {
	for _, name := range os.Environ() { // defaults of flags
		if name, _, _ = strings.Cut(name, "="); strings.HasPrefix(name, "SLIPWAY_") {
			t.Setenv(name, "")
		}
	}
	for file, made := range map[string]struct {
		text string
		most int
	}{
		"../docs/cli.md":    {commandPage(tree(t)), 30 << 10},
		"../docs/dagger.md": {modulePage(t), 9 << 10},
	} {
		require.LessOrEqual(t, len(made.text), made.most, file)
		if *rewrite {
			require.NoError(t, os.WriteFile(file, []byte(made.text), 0o644))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, made.text, string(got), "%s is not up to date: run make generate", file)
	}
}

const generated = "\n\n<!-- Written by go test ./cli -update, a part of make generate: a change made here is undone by it. -->\n\n"

// manual is the page of the commands, and what it has told already.
type manual struct {
	strings.Builder
	shared     map[string]bool // flags that are described once
	deployment []string        // those of them that most commands have
}

// commandPage is the page of all commands.
func commandPage(root *cobra.Command) string {
	var commands []*cobra.Command
	every(root, func(c *cobra.Command) {
		if !c.HasSubCommands() || flagsOf(c) != nil { // else it only has others below it
			commands = append(commands, c)
		}
	})
	texts, count := map[string]*pflag.Flag{}, map[string]int{}
	for _, c := range commands {
		for _, f := range flagsOf(c) {
			count[about(f)]++
			texts[about(f)] = f
		}
	}
	r := manual{shared: map[string]bool{}}
	r.WriteString("# Commands" + generated + "`slipway COMMAND --help` says more. [Using Slipway](using.md) has exit codes and what `dagger call` has in place of a command; [its functions](dagger.md).\n\n## Shared flags\n\n| flag | |\n|---|---|\n")
	for _, text := range slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return cmp.Compare(texts[a].Name, texts[b].Name) }) {
		if count[text] >= severalCommands {
			r.WriteString(text)
			r.shared[text] = true
		}
		if count[text] >= mostCommands {
			r.deployment = append(r.deployment, texts[text].Name)
		}
	}
	fmt.Fprintf(&r, "\nThe flags of a deployment are `--%s`.\n", strings.Join(r.deployment, "`, `--"))
	group := ""
	for _, g := range root.Groups() {
		for _, c := range commands {
			if top := topmost(c); top.GroupID != g.ID {
				continue
			}
			if group != g.ID {
				group = g.ID
				fmt.Fprintf(&r, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
			}
			r.command(c)
		}
	}
	return r.String()
}

// topmost is the command of slipway that c is, or is below.
func topmost(c *cobra.Command) *cobra.Command {
	for c.Parent().HasParent() {
		c = c.Parent()
	}
	return c
}

// flagsOf are the flags that a command shows, in its order.
func flagsOf(c *cobra.Command) (flags []*pflag.Flag) {
	for _, set := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				flags = append(flags, f)
			}
		})
	}
	return flags
}

// about is the row of a flag.
func about(f *pflag.Flag) string {
	name, text := "`--"+f.Name+"`", strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(f.Usage)
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	if !slices.Contains([]string{"", "false", "0", "[]"}, f.DefValue) {
		text += "; default " + strings.Trim(f.DefValue, "[]")
	}
	return "| " + name + " | " + text + " |\n"
}

// command is the section of a command.
func (r *manual) command(c *cobra.Command) {
	use := strings.TrimSuffix(strings.TrimPrefix(c.UseLine(), "slipway "), " [flags]")
	fmt.Fprintf(r, "\n### %s\n%s.\n", strings.NewReplacer("[", `\[`, "]", `\]`).Replace(use), c.Short)
	if c.Example != "" {
		fmt.Fprintf(r, "\n```\n%s\n```\n", strings.ReplaceAll(strings.Trim(c.Example, "\n"), "\n  ", "\n")[2:])
	}
	var own, shared []string
	has := map[string]bool{}
	for _, f := range flagsOf(c) {
		switch text := about(f); {
		case !r.shared[text]:
			own = append(own, text)
		case slices.Contains(r.deployment, f.Name):
			has[f.Name] = true
		default:
			shared = append(shared, "`--"+f.Name+"`")
		}
	}
	switch left := slices.DeleteFunc(slices.Clone(r.deployment), func(name string) bool { return has[name] }); {
	case len(has) == 0:
	case len(left) == 0:
		shared = append([]string{"those of a deployment"}, shared...)
	case len(left) < len(has):
		shared = append([]string{"those of a deployment without `--" + strings.Join(left, "`, `--") + "`"}, shared...)
	default:
		for _, name := range slices.Sorted(maps.Keys(has)) {
			shared = append(shared, "`--"+name+"`")
		}
	}
	if len(own) > 0 {
		r.WriteString("\n| flag | |\n|---|---|\n" + strings.Join(own, ""))
	}
	if len(shared) > 0 {
		fmt.Fprintf(r, "\nShared flags: %s.\n", strings.Join(shared, ", "))
	}
}

// modulePage is the page of the module's functions.
func modulePage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Functions of the Dagger module" + generated + "`dagger call FUNCTION --help` says more, and `dagger functions` lists them. An argument is what the flag of that name is to the [command](cli.md) of the function's name; in brackets: it may be left out. `--config` and `--name`, which choose the deployment, are left out here where they are optional.\n")
	table := func(title string) { fmt.Fprintf(&b, "\n%s\n|---|---|\n", title) }
	set, files := moduleFiles(t)
	line := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	flags := flagsOfFunctions(t)
	own := map[string]string{} // what no command has
	var rows []string
	functions(files, func(file *ast.File, f *ast.FuncDecl) {
		var takes []string
		if f.Recv == nil {
			table("| before the function | |")
		}
		for _, p := range f.Type.Params.List {
			name := p.Names[0]
			if name.Name == "ctx" {
				continue
			}
			said := ""
			for _, c := range file.Comments {
				if set.Position(c.End()).Line+1 == line(name) {
					said = c.Text() + c.List[len(c.List)-1].Text
				}
			}
			first, _, _ := strings.Cut(said, "\n")
			flag := "--" + kebab(name.Name)
			optional := strings.Contains(said, "+optional") || strings.Contains(said, "+default=")
			switch {
			case f.Recv == nil:
				fmt.Fprintf(&b, "| `%s` | %s |\n", flag, first)
				continue
			case optional && (flag == "--config" || flag == "--name"):
				continue
			case !flags[kebab(f.Name.Name)][flag]:
				own[flag] = first
			}
			if flag = "`" + flag + "`"; optional {
				flag = "[" + flag + "]"
			}
			takes = append(takes, flag)
		}
		if f.Recv != nil {
			first, _, _ := strings.Cut(f.Doc.Text(), "\n")
			_, does, _ := strings.Cut(first, " ")
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", kebab(f.Name.Name), strings.TrimSuffix(strings.TrimPrefix(does, "is "), "."), strings.Join(takes, " ")))
		}
	})
	b.WriteString("\n| function | | arguments |\n|---|---|---|\n" + strings.Join(slices.Sorted(slices.Values(rows)), ""))
	table("| argument that no command has | |")
	for _, flag := range slices.Sorted(maps.Keys(own)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", flag, own[flag])
	}
	return b.String()
}

// flagsOfFunctions are the flags of the command that each function has the name of.
func flagsOfFunctions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	every(tree(t), func(c *cobra.Command) {
		has := map[string]bool{}
		for _, f := range flagsOf(c) {
			has["--"+f.Name] = true
		}
		out[strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "slipway "), " ", "-")] = has
	})
	return out
}
