package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// moduleFiles are the files of the Dagger module.
func moduleFiles(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("../ci/*.go")
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if name == "../ci/dagger.gen.go" { // Dagger's own, where a developer has it
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	return set, files
}

// functions calls do with the constructor and each function of the module.
func functions(files []*ast.File, do func(*ast.File, *ast.FuncDecl)) {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() {
				do(file, f)
			}
		}
	}
}

// TestHelpOfTheModule: of a function or a flag, dagger shows the first line of its
// comment, so that must be a short sentence.
func TestHelpOfTheModule(t *testing.T) {
	set, files := moduleFiles(t)
	line := func(at token.Pos) int { return set.Position(at).Line }
	said := 0
	check := func(what string, doc *ast.CommentGroup) {
		first, _, _ := strings.Cut(doc.Text(), "\n")
		require.LessOrEqual(t, len(first), 80, what)
		require.Regexp(t, `\.$`, first, what)
		said++
	}
	functions(files, func(file *ast.File, f *ast.FuncDecl) {
		check(f.Name.Name, f.Doc)
		for _, p := range f.Type.Params.List {
			name := p.Names[0]
			if name.Name == "ctx" {
				continue
			}
			for _, c := range file.Comments {
				if line(c.End())+1 == line(name.Pos()) {
					check(f.Name.Name+" --"+name.Name, c)
				}
			}
		}
	})
	require.Greater(t, said, 60)
}

// unlike is what only one of the two surfaces has, and why: of `slipway` a command, a flag of
// one ("command --flag") or of all ("--flag"); of the module a function, or an argument of all
// functions, with "dagger call" before it.
var unlike = map[string]string{
	// Files and settings of the machine that calls.
	"use":              "chooses among the configurations stored on this machine",
	"env":              "prints variables for the shell of this machine",
	"bundle add":       "takes images from files of this machine and with the credentials of its docker login, and changes the bundle where it lies",
	"bundle sign":      "see bundle add",
	"bundle push":      "uses the credentials of docker login, and the bundle has to be on this machine anyway",
	"configure --name": "stored configurations are on the machine that calls; the module is given the file",

	// What starts nothing: dagger call clients exports slipway itself.
	"explain":         "starts nothing",
	"version":         "starts nothing",
	"validate":        "starts nothing",
	"schema":          "starts nothing",
	"config explain":  "starts nothing",
	"config migrate":  "starts nothing",
	"platform init":   "starts nothing",
	"platform render": "starts nothing",
	"platform schema": "starts nothing",
	"bundle list":     "starts nothing",

	// What an object of Dagger's is in place of.
	"--output":                    "dagger has a flag of that name: --format",
	"dagger call --format":        "see --output",
	"--out":                       "the module returns files and directories: export --path",
	"configure --force":           "the module returns the file; nothing is changed until it is exported",
	"save --package-key":          "see save --verify",
	"save --verify":               "a function of its own, verify-package",
	"dagger call verify-package":  "see save --verify",
	"dagger call reproduce-shell": "reproduce with a command, which returns the container",
	"--package":                   "a word of Go, and so no argument: --package-file",
	"dagger call --package-file":  "see --package",
	"runs show":                   "a function has no functions below it: runs --show ID",
	"dagger call runs --show":     "see runs show",
	"cluster --stop":              "the module returns a service, and dagger runs it: cluster up",

	// What the module cannot do.
	"--bundle-key":              "one way to say which bundle is wanted; slipway bundle verify says the digest of a signed one (decision 41)",
	"--certificate-identity":    "see --bundle-key",
	"--certificate-oidc-issuer": "see --bundle-key",
	"--trusted-root":            "see --bundle-key",

	// What a session of dagger call has no use for.
	"upgrade-matrix":             "the clusters of its cells run between the commands, which no session outlives",
	"--verbose":                  "dagger's own: --progress, --verbose",
	"--keep-cluster":             "the cluster ends with the session of dagger call",
	"--unpublished":              "see --keep-cluster",
	"--yes":                      "a function asks nobody",
	"logs --follow":              "a function returns its text at its end",
	"status --watch":             "see logs --follow",
	"destroy --ignore-not-found": "the module always does so: dagger call is for CI, where a second destroy is no error",
}

// arguments are those of a function of the module: whether each is a switch.
type arguments map[string]bool

// surface are the functions of the module, and the arguments that all of them share.
func surface(t *testing.T) (module map[string]arguments, shared arguments) {
	t.Helper()
	module = map[string]arguments{}
	_, files := moduleFiles(t)
	functions(files, func(_ *ast.File, f *ast.FuncDecl) {
		takes := arguments{}
		for _, p := range f.Type.Params.List {
			kind, _ := p.Type.(*ast.Ident)
			for _, name := range p.Names {
				if name.Name != "ctx" {
					takes[kebab(name.Name)] = kind != nil && kind.Name == "bool"
				}
			}
		}
		if f.Recv == nil {
			require.Equal(t, "New", f.Name.Name, "an exported function is the module's constructor")
			shared = takes
			return
		}
		module[kebab(f.Name.Name)] = takes
	})
	return module, shared
}

// TestModuleHasWhatTheCommandLineHas compares the two surfaces: each command is a function of
// the same name with the same flags, and the other way round, but for what is in unlike.
func TestModuleHasWhatTheCommandLineHas(t *testing.T) {
	module, constructor := surface(t)
	shared := slices.Collect(maps.Keys(constructor))
	used := map[string]bool{}
	excused := func(keys ...string) bool {
		for _, key := range keys {
			if _, ok := unlike[key]; ok {
				used[key] = true
				return true
			}
		}
		return false
	}
	commands := map[string]bool{}
	every(tree(t), func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "slipway ")
		if c.HasSubCommands() && !c.HasAvailableFlags() && !c.HasAvailablePersistentFlags() || excused(path) { // a group
			return
		}
		name := strings.ReplaceAll(path, " ", "-")
		commands[name] = true
		function, ok := module[name]
		arguments := slices.Sorted(maps.Keys(function))
		if !ok {
			t.Errorf("slipway %s is no function %s of the module: add it in ci/, or say why not in unlike", path, name)
			return
		}
		known := map[string]bool{}
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		for flag := range maps.Keys(known) {
			if hidden(c, flag) || slices.Contains(arguments, flag) || slices.Contains(shared, flag) || excused(path+" --"+flag, "--"+flag) {
				continue
			}
			t.Errorf("dagger call %s has no --%s, which slipway %s has", name, flag, path)
		}
		for _, word := range regexp.MustCompile(`[A-Z]{2,}`).FindAllString(c.Use, -1) {
			known[strings.ToLower(word)] = true
		}
		for _, argument := range arguments {
			if !known[argument] && !excused("dagger call "+name+" --"+argument, "dagger call --"+argument) {
				t.Errorf("slipway %s has no --%s, which dagger call %s has", path, argument, name)
			}
		}
	})
	for name := range module {
		if !commands[name] && !excused("dagger call "+name) {
			t.Errorf("dagger call %s is no command of slipway", name)
		}
	}
	for key, why := range unlike {
		require.NotEmpty(t, why, key)
		require.True(t, used[key], "%s is alike now: take it out of unlike", key)
	}
}

// hidden reports whether the help of a command leaves a flag out.
func hidden(c *cobra.Command, name string) bool {
	for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		if f := set.Lookup(name); f != nil {
			return f.Hidden
		}
	}
	return false
}

// kebab is a name of Go as dagger call has it: packageKey, PackageKey and package-key.
func kebab(name string) string {
	name = regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "$1-$2")
	name = regexp.MustCompile(`([A-Z])([A-Z][a-z])`).ReplaceAllString(name, "$1-$2")
	return strings.ToLower(name)
}
