package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
)

// line is a command with a parsed command line.
func line(t *testing.T, name string, args ...string) *cobra.Command {
	t.Helper()
	cmd, _, err := tree(t).Find([]string{name})
	require.NoError(t, err)
	require.NoError(t, cmd.ParseFlags(args))
	return cmd
}

// A command that is printed works on what the command line worked on.
func TestCommandsWorkOnTheSame(t *testing.T) {
	for _, c := range []struct {
		args          []string
		command, want string
	}{
		{nil, "install", "slipway install"},
		{[]string{"-n", "dev", "-c", "my dev.yaml"}, "install", "slipway install --config 'my dev.yaml' --name dev"},
		{[]string{"--name", "dev"}, "cluster --stop", "slipway cluster --stop --name dev"},
		{[]string{"--config", "c.yaml"}, "config migrate --dry-run", "slipway config migrate --dry-run --config c.yaml"},
		{[]string{"--config", "c.yaml"}, "install --config o'brien.yaml", "slipway install --config o'brien.yaml"},
		{[]string{"--platform", "./mine"}, "status --live", "slipway status --live --platform ./mine"},
		{[]string{"--platform", "./mine"}, "runs", "slipway runs"},
		{[]string{"--name", "dev"}, "bundle push DIR", "slipway bundle push DIR"},
		{[]string{"--state", "s3://b?region=x", "--secrets", "s.env"}, "runs", "slipway runs --state 's3://b?region=x' --secrets s.env"},
		{[]string{"--state", "s3://me:hunter2@b"}, "install", "slipway install"},
	} {
		require.Equal(t, c.want, usage.Line{Cmd: line(t, "install", c.args...), Stores: program().Stores}.Command(c.command))
	}
	require.Equal(t, "--config 'my file' --name dev --platform ./mine", usage.Line{Cmd: line(t, "install", "--platform", "./mine", "--name", "dev", "--config", "my file")}.Flags())

	t.Setenv(usage.EnvModule, "1")
	l := usage.Line{Cmd: line(t, "install", "--name", "dev", "--lock", "/slipway/in/lock.json", "--config", "c.yaml")}
	require.Equal(t, "dagger call save --config c.yaml --name dev --run r1", l.Function("save --run r1"), "where the module has its files means nothing to who called it")
	l = usage.Line{Cmd: line(t, "runs", "--state", "gs://b", "--secrets", "/slipway/in/secrets"), Stores: program().Stores}
	require.Equal(t, "dagger call --state gs://b runs", l.Function("runs"), "a URL does")
}

func TestAnErrorIsPrintedWithTheFlagsForItsCommands(t *testing.T) {
	f := &fault.Fault{Code: "NOT-001", Class: fault.Step, Err: errors.New("broken"), Fix: "slipway destroy", Log: "steps/x/log.txt"}
	l := usage.Line{Cmd: line(t, "install", "--name", "dev")}
	var w bytes.Buffer
	require.Equal(t, 4, complain(&w, "slipway install", l, f))
	require.Equal(t, "\nerror NOT-001: broken\n  remedy: slipway destroy (with the same flags: --name dev)\n"+
		"  log:    steps/x/log.txt in the run's report: slipway report --name dev\n", w.String())

	t.Setenv(usage.EnvModule, "1")
	w.Reset()
	f.Fix = "correct it"
	require.Equal(t, 4, complain(&w, "slipway install", l, f))
	require.Equal(t, "\nerror NOT-001: broken\n  remedy: correct it\n"+
		"  log:    steps/x/log.txt in the run's report: dagger call report --name dev\n", w.String())
}
