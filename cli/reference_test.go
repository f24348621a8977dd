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

// Flags that several commands have, with the same text, are described once. Those that so many
// commands have are the flags of a deployment.
const mostCommands = 13

// TestReference: docs/cli.md is what the commands say of themselves, and docs/dagger.md what the
// functions of the module do.
func TestReference(t *testing.T) {
	for _, name := range os.Environ() { // defaults of flags
		if name, _, _ = strings.Cut(name, "="); strings.HasPrefix(name, "SLIPWAY_") {
			t.Setenv(name, "")
		}
	}
	for file, text := range map[string]string{"../docs/cli.md": commandPage(tree(t)), "../docs/dagger.md": modulePage(t)} {
		if *rewrite {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(got), "%s is not up to date: run make generate", file)
	}
}

const generated = "\n\n<!-- Written by make generate. -->\n\n"

// manual is the page of the commands, and what it has told already.
type manual struct {
	strings.Builder
	shared map[string]bool // flags that are described once
	groups []flagGroup
}

// flagGroup are shared flags with a name.
type flagGroup struct {
	name  string
	flags []string
}

// commandPage is the page of all commands.
func commandPage(root *cobra.Command) string {
	var commands []*cobra.Command
	every(root, func(c *cobra.Command) {
		if !c.HasSubCommands() || flagsOf(c) != nil { // else it only has others below it
			commands = append(commands, c)
		}
	})
	flags, users := map[string]*pflag.Flag{}, map[string][]string{}
	for _, c := range commands {
		for _, f := range flagsOf(c) {
			users[about(f)] = append(users[about(f)], c.CommandPath())
			flags[about(f)] = f
		}
	}
	r := manual{shared: map[string]bool{}}
	r.WriteString("# Commands" + generated + "`slipway COMMAND --help` says more, with examples. [Using Slipway](using.md) has the exit codes, [Functions of the Dagger module](dagger.md) what `dagger call` has.\n\n## Shared flags\n")
	trust, deployment := flagGroup{name: "trust flags"}, flagGroup{name: "deployment flags"}
	var trusting string // the commands that check whom to trust
	for text, f := range flags {
		if f.Name == "trusted-root" {
			trusting = strings.Join(users[text], ",")
		}
	}
	for _, text := range slices.SortedFunc(maps.Keys(flags), func(a, b string) int { return cmp.Compare(flags[a].Name, flags[b].Name) }) {
		if len(users[text]) < 2 {
			continue
		}
		r.WriteString(text)
		r.shared[text] = true
		if strings.Join(users[text], ",") == trusting {
			trust.flags = append(trust.flags, flags[text].Name)
		}
		if len(users[text]) >= mostCommands {
			deployment.flags = append(deployment.flags, flags[text].Name)
		}
	}
	r.groups = []flagGroup{deployment, trust}
	others := slices.DeleteFunc(slices.Clone(deployment.flags), func(name string) bool { return slices.Contains(trust.flags, name) })
	fmt.Fprintf(&r, "\n- *trust flags*: %s\n- *deployment flags*: these and %s\n", listOf(trust.flags), listOf(others))
	group := ""
	for _, g := range root.Groups() {
		for _, c := range commands {
			if topmost(c).GroupID != g.ID {
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

// about is the line of a flag.
func about(f *pflag.Flag) string {
	name, text := "`--"+f.Name+"`", strings.ReplaceAll(f.Usage, "<", "&lt;")
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	if !slices.Contains([]string{"", "false", "0", "[]"}, f.DefValue) {
		text += "; default " + strings.Trim(f.DefValue, "[]")
	}
	return "- " + name + ": " + text + "\n"
}

// command is the section of a command.
func (r *manual) command(c *cobra.Command) {
	use := strings.TrimSuffix(strings.TrimPrefix(c.UseLine(), "slipway "), " [flags]")
	fmt.Fprintf(r, "\n### %s\n%s.\n", strings.NewReplacer("[", `\[`, "]", `\]`).Replace(use), c.Short)
	var own, shared []string
	for _, f := range flagsOf(c) {
		if text := about(f); r.shared[text] {
			shared = append(shared, f.Name)
		} else {
			own = append(own, text)
		}
	}
	if len(own) > 0 {
		r.WriteString("\n" + strings.Join(own, ""))
	}
	var all []string
	for _, g := range r.groups {
		lacks := slices.DeleteFunc(slices.Clone(g.flags), func(name string) bool { return slices.Contains(shared, name) })
		if 2*len(lacks) >= len(g.flags) {
			continue
		}
		shared = slices.DeleteFunc(shared, func(name string) bool { return slices.Contains(g.flags, name) })
		if all = append(all, g.name); len(lacks) > 0 {
			all[len(all)-1] += " without " + listOf(lacks)
		}
	}
	if len(shared) > 0 {
		all = append(all, listOf(shared))
	}
	if len(all) > 0 {
		fmt.Fprintf(r, "\nShared: %s.\n", strings.Join(all, ", "))
	}
}

// listOf is a list of flags.
func listOf(names []string) string { return "`--" + strings.Join(names, " --") + "`" }

// modulePage is the page of the module's functions.
func modulePage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Functions of the Dagger module" + generated + "A function does what the [command](cli.md) of its name does, `bundle-verify` what `bundle verify` does, with the same flags; [Using Slipway](using.md#which-command-is-which-function) says what differs. `dagger call FUNCTION --help` says more. Arguments in brackets are optional. Optional `--config` and `--name` are not listed.\n")
	set, files := moduleFiles(t)
	line := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	flags := flagsOfFunctions(t)
	own := map[string]string{} // what no command has
	var rows []string
	functions(files, func(file *ast.File, f *ast.FuncDecl) {
		var takes []string
		has := flags[kebab(f.Name.Name)]
		if before := strings.LastIndex(kebab(f.Name.Name), "-"); has == nil && before > 0 { // reproduce-shell is a part of reproduce
			has = flags[kebab(f.Name.Name)[:before]]
		}
		var like, before []string // flags of the constructor: those that install has, and the others
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
			case f.Recv == nil && flags["install"][flag]:
				like = append(like, kebab(name.Name))
				continue
			case f.Recv == nil:
				before = append(before, fmt.Sprintf("- `%s`: %s\n", flag, first))
				continue
			case optional && (flag == "--config" || flag == "--name"):
				continue
			case !has[flag]:
				own[flag] = first
			}
			if optional {
				flag = "[" + flag + "]"
			}
			takes = append(takes, flag)
		}
		if f.Recv == nil {
			end := ".\n"
			if len(before) > 0 {
				end = ", and\n\n" + strings.Join(before, "")
			}
			fmt.Fprintf(&b, "\nBefore the function: %s, as the [flags of commands](cli.md#shared-flags)%s", listOf(like), end)
		} else {
			does := ""
			if flags[kebab(f.Name.Name)] == nil { // no command says it
				first, _, _ := strings.Cut(f.Doc.Text(), "\n")
				_, does, _ = strings.Cut(first, " ")
				does = ": " + strings.TrimSuffix(strings.TrimPrefix(does, "is "), ".")
			}
			arguments := strings.Join(takes, " ")
			if arguments != "" {
				arguments = " `" + arguments + "`"
			}
			rows = append(rows, "- "+kebab(f.Name.Name)+arguments+does+"\n")
		}
	})
	b.WriteString("\nFunctions:\n\n" + strings.Join(slices.Sorted(slices.Values(rows)), ""))
	b.WriteString("\nArguments that are not flags of the command:\n\n")
	for _, flag := range slices.Sorted(maps.Keys(own)) {
		fmt.Fprintf(&b, "- `%s`: %s\n", flag, own[flag])
	}
	return b.String()
}

// flagsOfFunctions are the flags of the command that each function has the name of.
func flagsOfFunctions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	every(tree(t), func(c *cobra.Command) {
		if c.HasSubCommands() && flagsOf(c) == nil { // it only has others below it
			return
		}
		has := map[string]bool{}
		for _, f := range flagsOf(c) {
			has["--"+f.Name] = true
		}
		out[strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "slipway "), " ", "-")] = has
	})
	return out
}
