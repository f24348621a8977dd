package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

func TestHelpNamesEveryCommandAndFlag(t *testing.T) {
	code, out, errs := slipway("--help")
	require.Zero(t, code)
	require.Empty(t, errs)
	for name, cmd := range commands() {
		if cmd.hidden {
			require.NotContains(t, out, "\n  "+name+" ")
			continue
		}
		require.Contains(t, out, "\n  "+name+" ")
		code, help, errs := slipway(name, "--help")
		require.Zero(t, code, errs)
		require.Contains(t, help, cmd.short)
		require.Contains(t, help, "slipway "+name)
		require.NotContains(t, help, "-id ", "what only the module uses is hidden")
	}
}

func TestWrongCommandLines(t *testing.T) {
	for what, c := range map[string]struct {
		args []string
		says string
	}{
		"no such command":     {[]string{"instal"}, `did you mean "install"?`},
		"no such flag":        {[]string{"status", "--colour"}, "unknown flag: --colour"},
		"an argument":         {[]string{"install", "now"}, `unexpected argument "now"`},
		"parallel":            {[]string{"install", "--parallel", "-1"}, "give 0 or more"},
		"output":              {[]string{"status", "--output", "xml"}, "give text or json"},
		"bundle":              {[]string{"bundle"}, "give: verify DIR"},
		"lock":                {[]string{"lock"}, "give verify or update"},
		"server":              {[]string{"kubeconfig", "--server", "not a url"}, "such as https://127.0.0.1:6443"},
		"cluster":             {[]string{"cluster", "--stop", "--background"}, "give --background or --stop, not both"},
		"a step without name": {[]string{"step"}, "give one step"},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway(c.args...)
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, c.says)
		})
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}} {
		code, out, _ := slipway(args...)
		require.Zero(t, code)
		require.Equal(t, "slipway dev\n", out)
	}
}

func TestEveryErrorHasCodeAndRemedy(t *testing.T) {
	plain := func(s string) string { return s }
	f := &fault.Fault{Code: "INF-006", Class: fault.Step, Op: "destroy", Fix: "run again", Log: "steps/x/log.txt", Err: errors.New("refused")}
	var w bytes.Buffer
	require.Equal(t, 4, complain(&w, "destroy", plain, fmt.Errorf("infrastructure/x: %w", f)))
	require.Equal(t, "\nerror INF-006: infrastructure/x: destroy: refused\n  remedy: run again\n"+
		"  log:    steps/x/log.txt in the run's report (slipway report, or dagger call report)\n"+
		"  more:   https://github.com/slipway-sh/slipway/blob/main/docs/errors.md#inf-006\n", w.String())

	w.Reset()
	unknown := &fault.Fault{Code: "NOT-001", Class: fault.Step, Err: errors.New("broken")}
	require.Equal(t, 4, complain(&w, "install", plain, unknown))
	require.Equal(t, "\nerror NOT-001: broken\n", w.String(), "no entry to read, no link")

	w.Reset()
	require.Equal(t, 1, complain(&w, "status", plain, errors.New("no code")))
	require.Contains(t, w.String(), "RUN-003")
	require.Contains(t, w.String(), "no code")
	require.Contains(t, w.String(), "remedy: ")

	w.Reset()
	require.Zero(t, complain(&w, "status", plain, nil))
	require.Empty(t, w.String())
}

func TestTheClusterSaysHowToReachItAndHowToEndIt(t *testing.T) {
	set := pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	tgt := targetFlags(set)
	require.NoError(t, set.Parse([]string{"--name", "dev"}))
	tgt.cfg = &config.Config{Global: config.Global{Name: "dev"}}
	var out bytes.Buffer
	clusterReady(&out, tgt, []int{443})
	require.Equal(t, `the cluster of deployment dev is ready: https://127.0.0.1:6443
  port 443 of this machine is the load balancer's
  for kubectl, in another terminal: slipway kubeconfig --name dev --server https://127.0.0.1:6443 --output kubeconfig && export KUBECONFIG=$PWD/kubeconfig
Ctrl-C stops it.
`, out.String())

	r, w := io.Pipe()
	_, stop, release := interruptible(t.Context(), w, commands()["cluster"].stopping)
	defer release()
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(os.Interrupt))
	said, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "slipway: stopping the cluster; interrupt again to stop at once\n", said)
	<-stop
}

func TestServersOfAKubeconfig(t *testing.T) {
	for _, good := range []string{"https://127.0.0.1:6443", "https://[::1]:6443", "https://k8s.example.com/clusters/1", "http://localhost:8001"} {
		require.True(t, isServer(good), good)
	}
	for _, bad := range []string{"not a url", "127.0.0.1:6443", "https://", "https://:6443", "ftp://x", "https://u:p@x", "https://x?y", "https://x#y", "https://x:port", "https://a b", "//x"} {
		require.False(t, isServer(bad), bad)
	}
}

func TestValidateAsksThePlatformToo(t *testing.T) {
	for text, says := range map[string]string{
		"platform: {release: 9.9.9}\n": "PLT-006", "platform: {release: ./nowhere}\n": "CFG-004", "platform: {components: {databse: {enabled: false}}}\n": "PLT-003",
		"platform: {components: {database: {enabled: false}}}\n": "PLT-010", "platform: {settings: {a: 1}}\n": "PLT-009",
	} {
		code, _, errs := slipway("validate", "--config", configFile(t, "apiVersion: slipway.sh/v1\n"+text))
		require.Equal(t, 2, code, text)
		require.Contains(t, errs, says)
	}
}
