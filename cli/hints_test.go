package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/hint"
	"github.com/slipway-sh/slipway/cli/internal/module"
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

// A command in a remedy works on what the command line worked on.
func TestCommandsInRemediesWorkOnTheSame(t *testing.T) {
	for _, c := range []struct {
		args       []string
		text, want string
	}{
		{nil, "run again: slipway install", "run again: slipway install"},
		{[]string{"--name", "dev"}, "run again: slipway install; to look: slipway status", "run again: slipway install --name dev; to look: slipway status --name dev"},
		{[]string{"-n", "dev", "-c", "my dev.yaml"}, "then run slipway install again", "then run slipway install --config 'my dev.yaml' --name dev again"},
		{[]string{"--name", "dev"}, "(slipway report, or dagger call report)", "(slipway report --name dev, or dagger call report --name dev)"},
		{[]string{"--name", "dev", "--config", "c.yaml"}, "slipway cluster --name dev   # runs it", "slipway cluster --config c.yaml --name dev   # runs it"},
		{[]string{"--name", "dev"}, "slipway toolchain -- kubectl get pods", "slipway toolchain --name dev -- kubectl get pods"},
		{[]string{"--name", "dev"}, "slipway unlock --force --reason '…'", "slipway unlock --name dev --force --reason '…'"},
		{[]string{"--lock", "l.json", "--registry", "r.example.com"}, "slipway install, or dagger call install", "slipway install --lock l.json --registry r.example.com, or dagger call --lock l.json --registry r.example.com install"},
		{[]string{"--name", "dev"}, "slipway runs show ID, or slipway config explain", "slipway runs show --name dev ID, or slipway config explain --name dev"},
		{[]string{"--config", "c.yaml"}, "slipway config migrate", "slipway config migrate --config c.yaml"},
		{[]string{"--platform", "./mine"}, "slipway install, then slipway status --live, slipway runs", "slipway install --platform ./mine, then slipway status --platform ./mine --live, slipway runs"},
		{[]string{"--name", "dev"}, "slipway upgrade-matrix --from 1.0.0, dagger call upgrade-matrix-results", "slipway upgrade-matrix --name dev --from 1.0.0, dagger call upgrade-matrix-results"},
		{[]string{"--name", "dev"}, "slipway bundle push DIR, slipway explain X, a slipway that floats", "slipway bundle push DIR, slipway explain X, a slipway that floats"},
		{[]string{"--state", "s3://b?region=x", "--state-key", "key.txt", "--state-credentials", "aws.env"},
			"see that it is gone: slipway runs; then slipway unlock --force, or dagger call unlock",
			"see that it is gone: slipway runs --state 's3://b?region=x' --state-key key.txt --state-credentials aws.env; " +
				"then slipway unlock --state 's3://b?region=x' --state-key key.txt --state-credentials aws.env --force, " +
				"or dagger call --state 's3://b?region=x' --state-key file:key.txt --state-credentials file:aws.env unlock"},
		{[]string{"--state", "s3://b", "--lock", "l.json"}, "slipway install --state-key FILE --lock-timeout 1m", "slipway install --lock l.json --state s3://b --state-key FILE --lock-timeout 1m"},
		{[]string{"--state", "s3://me:hunter2@b"}, "slipway validate, slipway install", "slipway validate, slipway install"},
	} {
		require.Equal(t, c.want, hint.For(line(t, "install", c.args...), program().Stores)(c.text))
	}

	for name, want := range map[string]string{"validate": "run slipway validate --config c.yaml again", "status": "run slipway install --config c.yaml again"} {
		require.Equal(t, want, hint.For(line(t, name, "--config", "c.yaml"), nil)("run slipway install again"))
	}

	const late = "correct it, then run again: slipway install; to look at it: slipway status"
	for name, want := range map[string]string{
		"install": "correct it, then run again: slipway install --name dev; to look at it: slipway status --name dev",
		"upgrade": "correct it, then run the same command again; to look at it: slipway status --name dev",
	} {
		require.Equal(t, want, hint.For(line(t, name, "--name", "dev"), nil)(late))
	}
	f := &fault.Fault{Fix: late}
	goingOn(fmt.Errorf("upgrade: %w", f))
	require.Equal(t, "correct it, then run again: slipway upgrade --name dev --resume; to look at it: slipway status --name dev", hint.For(line(t, "upgrade", "--name", "dev"), nil)(f.Fix))

	for is, want := range map[string]string{
		"run the same command again: finished steps are kept":          "run again: slipway upgrade --resume; finished steps are kept",
		"run the same command again; what is finished is not repeated": "run again: slipway upgrade --resume; what is finished is not repeated",
		"look at the step's log, then run the same command again":      "look at the step's log, then run again: slipway upgrade --resume",
	} {
		f := &fault.Fault{Fix: is}
		goingOn(f)
		require.Equal(t, want, f.Fix)
	}

	t.Setenv(module.Env, "1")
	got := hint.For(line(t, "install", "--name", "dev", "--lock", "/slipway/in/lock.json", "--config", "c.yaml"), nil)("dagger call install")
	require.Equal(t, "dagger call install --config c.yaml --name dev", got, "where the module has its files means nothing to who called it")
	got = hint.For(line(t, "runs", "--state", "gs://b", "--state-key", "/slipway/in/state-key"), program().Stores)("dagger call runs")
	require.Equal(t, "dagger call --state gs://b runs", got, "a URL does")
}

// TestAQuotedWordOfACommandStaysOne: it may be the name of a file that somebody sent.
func TestAQuotedWordOfACommandStaysOne(t *testing.T) {
	const own = "o'brien/$(touch pwn)"
	for _, word := range []string{
		"x;slipway status;touch pwn;#.tar.zst", "x'; slipway status; touch pwn", "''slipway install, dagger call report''", "a b --config c --name d",
		"run slipway install again", hint.InstallAgain, "--config FILE", "it's slipway status", "a\nslipway status",
	} {
		for _, name := range []string{"install", "upgrade", "validate"} {
			for _, before := range []string{"the step's log; slipway configure --file ", "dagger call install --platform=", "kubectl --context=", "slipway config explain --secrets "} {
				text := before + fault.Quote(word) + " and, then slipway status"
				got := hint.For(line(t, name, "--config", own), nil)(text)
				require.Contains(t, got, before[max(strings.LastIndex(before, "--"), 0):]+fault.Quote(word)+" and, then slipway status --config "+fault.Quote(own), name)
			}
		}
	}
	require.Equal(t, "slipway install --config 'my file' --deployment '--config FILE'", hint.For(line(t, "install", "--config", "my file"), nil)("slipway install --deployment '--config FILE'"))
}

func TestAnErrorIsPrintedWithCommandsForTheSameDeployment(t *testing.T) {
	f := &fault.Fault{Code: "NOT-001", Class: fault.Step, Err: errors.New("broken"), Fix: "slipway destroy", Log: "steps/x/log.txt"}
	var w bytes.Buffer
	require.Equal(t, 4, complain(&w, "slipway install", hint.For(line(t, "install", "--name", "dev"), nil), f))
	require.Equal(t, "\nerror NOT-001: broken\n  remedy: slipway destroy --name dev\n"+
		"  log:    steps/x/log.txt in the run's report (slipway report --name dev, or dagger call report --name dev)\n", w.String())

	code, _, errs := slipway("toolchain", "--name", "dev")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "such as: slipway toolchain --name dev -- kubectl")
}

func TestCommandsForTheSameDeployment(t *testing.T) {
	folder := keptDeployments(t, "", "dev", "other")
	require.NoError(t, folder.Use("other"))
	file := folder.File("dev")
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("c.yaml", nil, 0o600))
	for _, c := range []struct {
		args       []string
		text, want string
	}{
		{[]string{"--deployment", "dev"}, "slipway install, then slipway cluster --stop", "slipway install --deployment dev, then slipway cluster --deployment dev --stop"},
		{[]string{"--deployment", "dev"}, "slipway validate --config FILE checks it", "slipway validate --deployment dev checks it"},
		{[]string{"--deployment", "dev"}, "slipway report, or dagger call report", "slipway report --deployment dev, or dagger call report --config " + file},
		{[]string{"--name", "dev"}, "slipway report, or dagger call report", "slipway report --name dev, or dagger call report --config " + file + " --name dev"},
		{nil, "slipway report, or dagger call report", "slipway report, or dagger call report --config " + folder.File("other")},
		{[]string{"--config", "c.yaml"}, "slipway report, or dagger call report", "slipway report --config c.yaml, or dagger call report --config c.yaml"},
		{[]string{"--deployment", "dev"}, "slipway use NAME, slipway explain X", "slipway use NAME, slipway explain X"},
	} {
		cmd, f := &cobra.Command{Use: "install"}, &deployment.Flags{}
		p := program()
		addDeployment(cmd, cmd.Flags(), &p, f)
		tree(t).AddCommand(cmd)
		require.NoError(t, cmd.ParseFlags(c.args))
		_, err := f.Source.Read(silent(nil))
		require.NoError(t, err)
		require.Equal(t, c.want, f.Hint(c.text))
	}
}
