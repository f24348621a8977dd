// Package hostile runs the slipway program on releases, packages, configurations, kubeconfigs,
// states and bundles that somebody made to do harm, and judges by the system calls of the program
// that nothing of them ran, opened a file that the user did not name, or made a connection.
//
// Each command runs under strace in a network namespace without any interface, so that a
// connection that is tried is noticed and reaches nobody. The tests are for Linux only; they fail
// where strace or namespaces do not work.
//
// Commands that need an engine (install, plan, save, report, reproduce) get the address of an
// engine that does not answer: the tests judge them up to their first question to it. What they
// do with a state happens in the engine's containers by `slipway state` and `slipway dry-run`,
// which run here on a state in a folder. Not reached are steps that work on a cluster,
// a bucket's own protocol, and what happens after the engine has answered.
package hostile

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// The programs that TestMain builds: the one under test, and one that does harm.
var slipway, harm string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hostile-*")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	slipway, harm = filepath.Join(dir, "slipway"), filepath.Join(dir, "harm")
	if err := os.WriteFile(harm+".go", []byte(harmful), 0o600); err != nil {
		panic(err)
	}
	for from, to := range map[string]string{".": slipway, harm + ".go": harm} {
		build := exec.Command("go", "build", "-C", "../../..", "-trimpath", "-ldflags=-s", "-o", to, from)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released: what the C library reads is not Slipway's
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic("build " + to + ": " + err.Error())
		}
	}
	return m.Run()
}

// A case is one hostile input, and what the user does with it.
type testCase struct {
	name  string
	tries string // what it wants
	says  string // what the first command says, so that it is known to have got there; empty: nothing in particular
	// Of its commands.
	commands []command
	files    map[string]string
	make     func(t *testing.T, s sandbox) // what has no place in an archive of texts; nil: nothing
}

// A command is a command line, and what it may do.
type command struct {
	args  []string
	rules rules
}

// archives reads testdata. Each archive is about one kind of input, and its comment has in each
// line a case, as NAME: WHAT IT TRIES -> WHAT THE FIRST COMMAND SAYS, or what is so of each case:
//
//	run: COMMAND        a command line; files of the working directory in it may be read
//	reads: NAME         what the user named elsewhere, such as the release of a configuration
//	engine: yes         the commands may ask the engine
//	raw: yes            what they print is for programs
//
// The files of a case are in the folder of its name; those in all/ are in each.
func archives(t *testing.T) []testCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []testCase
	for _, file := range files {
		out = append(out, archive(t, file)...)
	}
	return out
}

func archive(t *testing.T, file string) []testCase {
	t.Helper()
	a, err := txtar.ParseFile(file)
	require.NoError(t, err)
	kind := strings.TrimSuffix(filepath.Base(file), ".txtar")
	var commands []command
	var reads []string
	var with rules
	byName := map[string]*testCase{}
	var order []string
	for line := range strings.Lines(string(a.Comment)) {
		name, text, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue // prose
		}
		switch name {
		case "run":
			commands = append(commands, command{args: strings.Fields(text)})
		case "reads":
			reads = append(reads, text)
		case "engine":
			with.engine = text == "yes"
		case "raw":
			with.raw = text == "yes"
		default:
			tries, says, _ := strings.Cut(text, " -> ")
			require.NotContains(t, byName, name, file)
			byName[name] = &testCase{name: kind + "/" + name, tries: tries, says: says, files: map[string]string{}}
			order = append(order, name)
		}
	}
	require.NotEmpty(t, commands, file)
	for _, f := range a.Files {
		folder, name, ok := strings.Cut(f.Name, "/")
		require.True(t, ok, "%s: %s", file, f.Name)
		if folder == "all" {
			for _, c := range byName {
				c.files[name] = string(f.Data)
			}
		}
	}
	own := map[string]bool{}
	for _, f := range a.Files {
		folder, name, _ := strings.Cut(f.Name, "/")
		if folder != "all" {
			require.Contains(t, byName, folder, "%s: a case without a line", file)
			byName[folder].files[name] = string(f.Data)
			own[folder] = true
		}
	}
	require.Len(t, own, len(byName), "%s: a case without files", file)
	var out []testCase
	for _, name := range order {
		c := byName[name]
		for _, cmd := range commands {
			c.commands = append(c.commands, from(cmd.args, reads, with))
		}
		out = append(out, *c)
	}
	return out
}

// from is a command that may read what its command line names, and write what is in out/.
func from(args, reads []string, with rules) command {
	with.program = slipway
	with.reads = append(with.reads, reads...)
	for _, arg := range args[1:] {
		if _, value, ok := strings.Cut(arg, "="); ok {
			arg = value
		}
		if !strings.HasPrefix(arg, "-") {
			with.reads = append(with.reads, arg)
		}
	}
	line := strings.Join(args, " ")
	with.raw = with.raw || strings.HasPrefix(line, "platform render") || strings.Contains(line, "--out -") || strings.Contains(line, "--output")
	return command{args, with}
}

// TestNothingThatIsOnlyLookedAtExecutes tries each case.
func TestNothingThatIsOnlyLookedAtExecutes(t *testing.T) {
	cases := slices.Concat(archives(t), configurations(), packages(), links(), states(), bundles(), locks(), reports())
	names := map[string]bool{}
	for _, c := range cases {
		require.False(t, names[c.name], "two cases are called %s", c.name)
		require.NotEmpty(t, c.tries, c.name)
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.try(t)
		})
	}
	t.Logf("%d cases", len(cases))
}

func (c testCase) try(t *testing.T) {
	s := newSandbox(t)
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		s.write(t, name, []byte(c.files[name]))
	}
	if c.make != nil {
		c.make(t, s)
	}
	for i, cmd := range c.commands {
		got := s.run(t, slipway, cmd.args...)
		t.Logf("%s: slipway %s: exit code %d\n%s", c.tries, strings.Join(cmd.args, " "), got.code, got.stderr)
		s.judge(t, cmd.rules, got)
		if i == 0 {
			require.Contains(t, got.stdout+got.stderr, c.says)
		}
	}
}
