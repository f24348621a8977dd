package main

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components are the parts of Kubernetes that this program can be, by the name
// of the upstream command.
func components() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-proxy":              proxy.NewProxyCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 newKubelet,
	}
}

// newKubelet gives the kubelet a context that nothing cancels early: its command
// derives its own from the signal handler it installs.
func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }

// runComponent runs one part of Kubernetes in this process and returns its exit
// code.
func runComponent(newCommand func() *cobra.Command, args []string) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	return cli.Run(cmd)
}
