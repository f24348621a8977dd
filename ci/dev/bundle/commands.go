package main

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/sources"
	"github.com/slipway-sh/slipway/containers/lock"
)

// The names of the Go commands that the bundle consists of.
const (
	terraform   = "terraform"
	helm        = "helm"
	kubectl     = "kubectl"
	slipway     = "slipway"
	slipwayNode = "slipway-node"
	argocd      = "argocd"
	coredns     = "coredns"
	gitea       = "gitea"
	localPath   = "local-path-provisioner"
	guestbook   = "guestbook"
	dex         = "dex"
	console     = "console"
	portal      = "portal"
	pause       = "pause"
	etcd        = "etcd"
	containerd  = "containerd"
	shim        = "containerd-shim-runc-v2"
)

// giteaModule is the import path of Gitea's packages. The lock pins another path
// (code.gitea.io/gitea): the module proxy serves the module there, its former address.
const giteaModule = "gitea.dev"

// giteaRoot is where Gitea finds its templates, texts and assets in its image.
const giteaRoot = "usr/share/gitea"

// commands lists the Go commands in the order in which they are built. source is
// the repository's root; versions come from the lock; arch is what they are for; without
// names what is left out. digest is that of slipway's sources.
func commands(ctx context.Context, source string, l *lock.Lock, arch string, without []string) (all []gotool.Command, digest string, err error) {
	tools := filepath.Join(source, "ci/dev/bundle/tools")
	node := filepath.Join(source, "containers/node")
	apps := filepath.Join(source, "examples/platform/apps")
	version := map[string]string{}
	for _, t := range l.Tools {
		version[t.Name] = t.Version
	}
	for _, i := range l.Images {
		version[i.Name] = i.Version
	}
	strip := []string{"-w"} // the symbol table stays: by it `make scan` knows which functions a program has
	set := func(variables ...string) []string {
		flags := strip
		for _, v := range variables {
			flags = append(flags[:len(flags):len(flags)], "-X", v)
		}
		return flags
	}
	kubernetes := func(version string) []string {
		numbers := strings.Split(version, ".")
		var variables []string
		for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			variables = append(variables, pkg+".gitVersion=v"+version, pkg+".gitMajor="+numbers[0], pkg+".gitMinor="+numbers[1])
		}
		return set(variables...)
	}
	runtimeCommand := func(name string) gotool.Command {
		return gotool.Command{
			Name: name, Module: filepath.Join(tools, containerd), Package: "github.com/containerd/containerd/v2/cmd/" + name,
			// Snapshotters that the node does not use.
			Tags: []string{"no_btrfs", "no_devmapper", "no_zfs"}, LDFlags: strip,
		}
	}
	all = []gotool.Command{
		{
			Name: terraform, Module: filepath.Join(tools, terraform), Package: "github.com/hashicorp/terraform",
			LDFlags: set("github.com/hashicorp/terraform/version.dev=no"),
			Instead: &gotool.Instead{Module: "github.com/hashicorp/terraform", Files: "instead"},
		},
		{
			Name: kubectl, Module: node, Package: "k8s.io/kubernetes/cmd/kubectl",
			LDFlags: kubernetes(version[kubectl]), Sources: pins,
		},
		{Name: slipwayNode, Module: node, Package: ".", LDFlags: kubernetes(version["node"])},
		{Name: etcd, Module: filepath.Join(tools, etcd), Package: "go.etcd.io/etcd/server/v3", LDFlags: strip},
		runtimeCommand(containerd),
		runtimeCommand(shim),
		gotool.BuildRunc(source, "", "", string(targets()[arch])), // its library comes when the Debian layers are there
		{
			Name: gitea, Module: filepath.Join(tools, gitea), Package: giteaModule,
			LDFlags: set("main.Version="+version[gitea], giteaModule+"/modules/setting.StaticRootPath=/"+giteaRoot),
			Instead: &gotool.Instead{Module: giteaModule, Files: "instead"},
		},
		{
			Name: argocd, Module: filepath.Join(tools, argocd), Package: "github.com/argoproj/argo-cd/v3/cmd",
			LDFlags: set("github.com/argoproj/argo-cd/v3/common.version=" + version[argocd]),
		},
		{Name: coredns, Module: filepath.Join(tools, coredns), Package: "github.com/coredns/coredns", LDFlags: strip},
		{
			Name: helm, Module: filepath.Join(tools, helm), Package: "helm.sh/helm/v3/cmd/helm",
			LDFlags: set("helm.sh/helm/v3/internal/version.version=v" + version[helm]),
		},
		{
			Name: localPath, Module: filepath.Join(tools, localPath), Package: "github.com/rancher/local-path-provisioner",
			LDFlags: set("main.VERSION=v" + version[localPath]),
		},
		{Name: guestbook, Module: apps, Package: "./guestbook", LDFlags: strip},
		{ // its SQLite, without which it does not compile, is C
			Name: dex, Module: filepath.Join(tools, dex), Package: "github.com/dexidp/dex/cmd/dex", CGO: true,
			LDFlags: set("main.version=v" + version[dex]),
		},
		{Name: portal, Module: apps, Package: "./portal", LDFlags: strip},
		{Name: console, Module: apps, Package: "./console", LDFlags: strip},
		{
			Name: pause, Module: node, Package: "./pause", LDFlags: strip,
			Sources: func(path string) bool { return strings.HasPrefix(path, "pause/") },
		},
	}
	all = append(all, addonCommands(tools, version, set)...)
	if !slices.Contains(without, slipway) {
		var own func(path string) bool
		if own, digest, err = sources.OfSlipway(ctx, source); err != nil {
			return nil, "", err
		}
		all = append(all, gotool.Command{Name: slipway, Module: source, Package: ".", LDFlags: set("main.source=" + digest), Sources: own})
	}
	all = slices.DeleteFunc(all, func(c gotool.Command) bool { return slices.Contains(without, c.Name) })
	if arch != runtime.GOARCH {
		for i := range all {
			all[i].System, all[i].CC = "linux/"+arch, targets()[arch].compiler()
		}
	}
	return all, digest, nil
}

// seccompLayer is the Debian layer with the library that runc is linked with. No image has it.
const seccompLayer = "seccomp"

// pins are the files of a module that decide what a command outside it is built
// from.
func pins(path string) bool { return path == "go.mod" || path == "go.sum" }
