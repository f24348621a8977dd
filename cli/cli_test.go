package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
	providers "github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/incontainer"
)

// program is Slipway with everything that it has.
func program() Program {
	return Program{
		Version: "dev", Providers: providers.All(), Steps: incontainer.Steps, Contents: incontainer.Contents, Render: incontainer.Render,
		Stores: buckets.All(),
	}
}

func TestMain(m *testing.M) { os.Exit(withoutDeployments(m)) }

// withoutDeployments runs the tests without the deployments and the bundle's digest of who
// runs them.
func withoutDeployments(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipway-test-")
	if err == nil {
		err = errors.Join(os.Setenv(config.EnvFolder, dir), os.Unsetenv(source.EnvDeployment), os.Unsetenv("SLIPWAY_BUNDLE_DIGEST"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return m.Run()
}

// slipway runs the program and returns exit code, standard output and error.
func slipway(args ...string) (int, string, string) {
	var out, errs bytes.Buffer
	code := Run(context.Background(), program(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// every calls do with each command that is not hidden.
func every(cmd *cobra.Command, do func(*cobra.Command)) {
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			do(c)
			every(c, do)
		}
	}
}

// tree are all commands.
func tree(t *testing.T) *cobra.Command {
	t.Helper()
	p := program()
	return newRoot(t.Context(), &p)
}

func TestHelpNamesEveryCommandAndFlag(t *testing.T) {
	code, out, errs := slipway("--help")
	require.Zero(t, code)
	require.Empty(t, errs)
	require.Contains(t, out, "Exit codes: 0 ok, 1 bug")
	require.Contains(t, out, "installs, upgrades, tests and removes")
	for _, c := range tree(t).Commands() {
		if c.Hidden {
			require.NotContains(t, out, "\n  "+c.Name()+" ")
		} else {
			require.Contains(t, out, "\n  "+c.Name()+" ")
		}
	}
	every(tree(t), func(c *cobra.Command) {
		code, help, errs := slipway(append(strings.Fields(c.CommandPath())[1:], "--help")...)
		require.Zero(t, code, errs)
		require.True(t, strings.HasPrefix(help, c.Short) || c.Long != "" && strings.HasPrefix(help, c.Long), help)
		require.Contains(t, help, c.CommandPath())
		require.NotContains(t, help, "-id ", "what only the module uses is hidden")
		require.NotContains(t, help, "Exit codes")
	})
}

func TestWrongCommandLines(t *testing.T) {
	for what, c := range map[string]struct {
		args []string
		says string
	}{
		"no such command":       {[]string{"instal"}, `did you mean "install"?`},
		"it is in a group":      {[]string{"render", "--platform", "shop"}, `slipway: there is no command "render"; did you mean "platform"?`},
		"in a group, no flag":   {[]string{"migrate"}, `did you mean "config"?`},
		"group, with a flag":    {[]string{"platform", "rendr", "--platform", "shop"}, `there is no "rendr"; give init or render or schema`},
		"a flag, no command":    {[]string{"--colour"}, "slipway: unknown flag: --colour"},
		"no such flag":          {[]string{"status", "--colour"}, "unknown flag: --colour"},
		"a flag like another":   {[]string{"status", "--outptu", "json"}, "unknown flag: --outptu; did you mean --output?"},
		"an argument":           {[]string{"install", "now"}, `unexpected argument "now"`},
		"parallel":              {[]string{"install", "--parallel", "-1"}, "give 0 or more"},
		"upgrade, parallel":     {[]string{"upgrade", "--parallel", "-1"}, "give 0 or more"},
		"upgrade, no command":   {[]string{"upgrade", "1.1.0"}, `unexpected argument "1.1.0"`},
		"output":                {[]string{"status", "--output", "xml"}, "give text or json"},
		"bundle":                {[]string{"bundle"}, "give list or verify or add or sign or push"},
		"lock":                  {[]string{"lock"}, "give verify"},
		"no such lock":          {[]string{"lock", "verfy"}, `there is no "verfy"; give verify`},
		"where to look":         {[]string{"lock", "verify", "--bundel"}, "See slipway lock verify --help."},
		"no id":                 {[]string{"runs", "show"}, "give the id of one run"},
		"an action for a state": {[]string{"state"}, "give: ACTION"},
		"a session":             {[]string{"session"}, `there is no command "session"`},
		"cluster":               {[]string{"cluster", "--stop", "--keep-cluster"}, "give --keep-cluster or --stop, not both"},
		"a step without name":   {[]string{"step"}, "give one step"},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway(c.args...)
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, c.says)
		})
	}
}

// TestACommandWithoutAWorkflowEndsAtTheFirstInterrupt, whatever its error is then.
func TestACommandWithoutAWorkflowEndsAtTheFirstInterrupt(t *testing.T) {
	var errs bytes.Buffer
	cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: console.AtOnce(func(ctx context.Context, _ console.Streams, _ []string) error {
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(os.Interrupt))
		<-ctx.Done()
		return errors.New("the engine does not answer")
	})}
	cmd.SetArgs([]string{}) // none, and not those of this process
	cmd.SetErr(&errs)
	err := cmd.ExecuteContext(t.Context())
	require.Equal(t, fault.Cancelled, fault.ClassOf(err))
	require.EqualError(t, err, "run: interrupted")
	require.Contains(t, errs.String(), "slipway: stopping; interrupt again to stop at once")
}

func TestVersion(t *testing.T) {
	code, out, _ := slipway("--version")
	require.Zero(t, code)
	require.Equal(t, "slipway dev\n", out)
	code, out, _ = slipway("version")
	require.Zero(t, code)
	require.Regexp(t, `\Aslipway dev\nsources +unknown: make did not build it\npins +sha256:[0-9a-f]{64}\n`, out)

	pins, err := lock.Load()
	require.NoError(t, err)
	digest, err := pins.Digest()
	require.NoError(t, err)
	for version, want := range map[string]string{"dev": "dev-1a2b3c4d5e6f", "v1.2.3": "v1.2.3"} {
		p := program()
		p.Version, p.Source = version, "sha256:1a2b3c4d5e6f7a8b"
		print := func(args ...string) string {
			var out, errs bytes.Buffer
			require.Zero(t, Run(t.Context(), p, append([]string{"version"}, args...), strings.NewReader(""), &out, &errs), errs.String())
			return out.String()
		}
		text := print()
		require.True(t, strings.HasPrefix(text, "slipway "+want+"\n"), text)
		for _, row := range []string{"sources sha256:1a2b3c4d5e6f7a8b", "pins " + digest, "go " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH} {
			require.Contains(t, strings.Join(strings.Fields(text), " "), row)
		}
		for _, tool := range pins.Tools {
			require.Contains(t, text, tool.Name+" "+tool.Version)
		}
		node, _ := pins.Image("node")
		require.Contains(t, text, "node "+node.Version+" (Kubernetes), ")
		var c composition
		require.NoError(t, json.Unmarshal([]byte(print("--output", "json")), &c))
		require.Equal(t, want+" "+digest, c.Version+" "+c.Pins)
		require.Contains(t, c.Images, versioned{"node", node.Version})
		require.Len(t, c.Tools, len(pins.Tools))
	}
}

func TestEveryErrorHasCodeAndRemedy(t *testing.T) {
	f := &fault.Fault{Code: "INF-003", Class: fault.Step, Op: "destroy", Fix: "run again", Log: "steps/x/log.txt", Err: errors.New("refused")}
	var w bytes.Buffer
	require.Equal(t, 4, complain(&w, "slipway destroy", usage.Line{}, fmt.Errorf("infrastructure/x: %w", f)))
	require.Equal(t, "\nerror INF-003: infrastructure/x: destroy: refused\n  remedy: run again\n"+
		"  log:    steps/x/log.txt in the run's report: slipway report\n"+
		"  more:   https://github.com/slipway-sh/slipway/blob/main/docs/errors.md#inf-003\n", w.String())

	w.Reset()
	unknown := &fault.Fault{Code: "NOT-001", Class: fault.Step, Err: errors.New("broken")}
	require.Equal(t, 4, complain(&w, "slipway install", usage.Line{}, unknown))
	require.Equal(t, "\nerror NOT-001: broken\n", w.String(), "no entry to read, no link")

	w.Reset()
	require.Equal(t, 1, complain(&w, "slipway status", usage.Line{}, errors.New("no code")))
	require.Contains(t, w.String(), "RUN-003")
	require.Contains(t, w.String(), "no code")
	require.Contains(t, w.String(), "remedy: ")

	w.Reset()
	require.Zero(t, complain(&w, "slipway status", usage.Line{}, nil))
	require.Empty(t, w.String())

	// What a tool says does not reach the terminal: here the clipboard, a link and a title.
	w.Reset()
	said := errors.New("helm: \x1b]52;c;cm0gLXJmIH4=\x07no \x1b]8;;https://evil.example\x1b\\chart\x1b]8;;\x1b\\\n  line 2\x1b]0;owned\x07 \u202egnp.exe")
	require.Equal(t, 4, complain(&w, "slipway install", usage.Line{}, &fault.Fault{Code: "STP-001", Class: fault.Step, Op: "install it", Fix: "run \x1b[2Kthis", Err: said}))
	require.Contains(t, w.String(), "install it: helm: no chart\n  line 2 gnp.exe\n  remedy: run this\n")
}

// TestErrorsThatHaveNothingToDoWithEachOther are told one by one, each once; the exit code
// is that of the first.
func TestErrorsThatHaveNothingToDoWithEachOther(t *testing.T) {
	a := &fault.Fault{Code: "NOT-001", Class: fault.Usage, Fix: "mend a", Err: errors.New("a")}
	b := &fault.Fault{Code: "NOT-002", Class: fault.Preflight, Fix: "mend b", Err: errors.New("b")}
	require.NoError(t, console.Together(nil, errors.Join(nil)))
	require.Same(t, a, console.Together(nil, a, errors.Join(a, nil)))
	both := console.Together(errors.Join(a, errors.Join(b, a)), b)
	require.ErrorIs(t, both, b)
	var w bytes.Buffer
	require.Equal(t, 2, complain(&w, "slipway validate", usage.Line{}, both))
	require.Equal(t, "\nerror NOT-001: a\n  remedy: mend a\n\nerror NOT-002: b\n  remedy: mend b\n", w.String())
	said := fmt.Errorf("read %w and %w", a, b)
	require.Equal(t, said, console.Together(said), "they belong together")
}

// broken panics when something is written to it.
type broken struct{}

func (broken) Write([]byte) (int, error) { panic("out of paper") }

func TestAPanicIsABug(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, int(fault.Bug), Run(t.Context(), program(), []string{"version"}, nil, broken{}, &errs))
	require.Contains(t, errs.String(), "error RUN-003: panic: out of paper\n")
	require.Contains(t, errs.String(), "cli_test.go", "where")
}

// TestAnEmptyKeyIsNoKey: "$KEY" is empty where KEY is not set, and then nothing would be verified.
func TestAnEmptyKeyIsNoKey(t *testing.T) {
	n := 0
	every(tree(t), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "key" && !strings.HasSuffix(f.Name, "-key") {
				return
			}
			n++
			args := append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name, "")
			if cmd.Parent().Name() == "bundle" {
				args = append(args, t.TempDir())
			}
			if cmd.Name() == "push" || cmd.Name() == "show" || cmd.Name() == "toolchain" {
				args = append(args, "registry.example.com/x")
			}
			code, _, errs := slipway(args...)
			require.Equal(t, 2, code, "%v: %s", args, errs)
			require.Contains(t, errs, "--"+f.Name+" is empty", args)
		})
	})
	require.Greater(t, n, 10)
	code, _, errs := slipway("save", "--verify", "x.tar.zst", "--package-key", "")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--package-key is empty")
}

// TestACommandSaysHowItEnded to the program that runs it, and not to processes of its own.
func TestACommandSaysHowItEnded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "result.json")
	for args, want := range map[string]console.Result{
		"version":             {},
		"explain XYZ-1":       {Error: "there is no code \"XYZ-1\"; there are none like it; all codes: " + errorsPage},
		"bundle list /no/dir": {Code: "BUN-001", Error: "read the bundle"},
	} {
		t.Setenv(console.EnvResult, file)
		code, _, errs := slipway(strings.Fields(args)...)
		require.Equal(t, want.Error == "", code == 0, errs)
		require.Empty(t, os.Getenv(console.EnvResult))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var got console.Result
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, want.Code, got.Code, args)
		require.Contains(t, got.Error, want.Error)
		require.Nil(t, got.Run)
	}
}
