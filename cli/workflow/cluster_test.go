package workflow

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/providers/all"
)

func TestTheClusterSaysHowToReachItAndHowToEndIt(t *testing.T) {
	for bind, says := range map[string]struct{ host, who string }{
		"127.0.0.1":   {"127.0.0.1", "only this machine reaches its ports (local.bind in the configuration: on which address they are published)"},
		"0.0.0.0":     {"127.0.0.1", "its ports are published on all addresses of this machine: anyone who reaches one of them reaches the cluster"},
		"2001:db8::1": {"[2001:db8::1]", "anyone who reaches the address 2001:db8::1 of this machine reaches the cluster"},
	} {
		var out bytes.Buffer
		clusterReady(console.Streams{Out: &out, Err: progress.Open(io.Discard, progress.Options{})}, &deployment.Deployment{
			Config: &config.Config{Global: config.Global{Name: "dev"}}, Session: &session.Session{},
			Line: usage.Line{Cmd: line(t, NewCluster(&source.Program{Providers: all.All()}), "--name", "dev")},
		}, bind, []int{7443, 443})
		require.Equal(t, `the cluster of deployment dev is ready: https://`+says.host+`:7443
  port 443 of this machine is the load balancer's
  `+says.who+`
  for kubectl, in another terminal: slipway kubeconfig --out kubeconfig --name dev && export KUBECONFIG=$PWD/kubeconfig
Ctrl-C stops it.
`, out.String())
	}
}

func TestAClusterOnNoPortOfThisMachine(t *testing.T) {
	var out bytes.Buffer
	clusterReady(console.Streams{Out: &out, Err: progress.Open(io.Discard, progress.Options{})}, &deployment.Deployment{
		Config:  &config.Config{Global: config.Global{Name: "dev"}},
		Session: &session.Session{Joined: &background.Client{Info: background.Info{PID: 7, Background: true, Log: "/dev.log", Unpublished: true}}},
		Line:    usage.Line{Cmd: line(t, NewCluster(&source.Program{Providers: all.All()}), "--name", "dev")},
	}, "127.0.0.1", nil)
	require.Equal(t, `the cluster of deployment dev is ready, on no port of this machine
  for kubectl: slipway toolchain --name dev -- kubectl get pods -A
It runs in the background (process 7, log /dev.log), until: slipway cluster --stop --name dev
`, out.String())
}
