package main

import (
	"path/filepath"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
)

// The Go commands of what platforms add to a cluster, each called as its image is.
const (
	acmeSolver         = "cert-manager-acmesolver"
	argoExec           = "argoexec"
	caInjector         = "cert-manager-cainjector"
	certManager        = "cert-manager-controller"
	certManagerWebhook = "cert-manager-webhook"
	externalSecrets    = "external-secrets"
	pebble             = "pebble"
	traefik            = "traefik"
	workflowController = "workflow-controller"
)

// addonCommands lists these commands, of which tools has the modules. version is by name of
// the image; set are the flags of the linker that set variables.
func addonCommands(tools string, version map[string]string, set func(variables ...string) []string) []gotool.Command {
	const (
		argo    = "github.com/argoproj/argo-workflows/v3"
		certs   = "github.com/cert-manager/cert-manager"
		secrets = "github.com/external-secrets/external-secrets"
	)
	workflows := func(name string) gotool.Command {
		return gotool.Command{
			Name: name, Module: filepath.Join(tools, "argo-workflows"), Package: argo + "/cmd/" + name,
			LDFlags: set(argo + ".version=v" + version[name]),
		}
	}
	certificates := func(name, dir string) gotool.Command {
		return gotool.Command{
			Name: name, Module: filepath.Join(tools, "cert-manager"), Package: certs + "/cmd/" + dir,
			LDFlags: set(certs + "/pkg/util.AppVersion=v" + version[name]),
		}
	}
	executor := workflows(argoExec)
	executor.Instead = &gotool.Instead{Module: argo, Links: map[string]string{
		"workflow/executor/osspecific/signal_linux.go": "workflow/executor/osspecific/signal_darwin.go",
	}}
	return []gotool.Command{
		{
			Name: externalSecrets, Module: filepath.Join(tools, "external-secrets"), Package: secrets,
			LDFlags: set(), Instead: &gotool.Instead{Module: secrets, Files: "instead"},
		},
		certificates(certManager, "controller"),
		certificates(certManagerWebhook, "webhook"),
		certificates(caInjector, "cainjector"),
		certificates(acmeSolver, "acmesolver"),
		{
			Name: traefik, Module: filepath.Join(tools, "traefik"), Package: "github.com/traefik/traefik/v3/cmd/traefik",
			LDFlags: set("github.com/traefik/traefik/v3/pkg/version.Version=" + version[traefik]),
			Instead: &gotool.Instead{Module: "github.com/go-acme/lego/v5", Files: "instead"},
		},
		workflows(workflowController),
		executor,
		{
			Name: pebble, Module: filepath.Join(tools, "pebble"), Package: "github.com/letsencrypt/pebble/v2/cmd/pebble",
			LDFlags: set("main.version=v" + version[pebble]),
		},
	}
}

// addons says how their images are made: of the program alone.
func (b *builder) addons(common ...oci.File) map[string]definition {
	all := map[string]definition{}
	for name, ports := range map[string][]string{
		acmeSolver:         {"8089/tcp"},
		argoExec:           nil,
		caInjector:         nil,
		certManager:        {"9402/tcp", "9403/tcp"},
		certManagerWebhook: {"6080/tcp", "10250/tcp"},
		externalSecrets:    {"8080/tcp", "8082/tcp", "10250/tcp"},
		pebble:             {"14000/tcp", "15000/tcp"},
		traefik:            {"8000/tcp", "8443/tcp"},
		workflowController: {"6060/tcp", "9090/tcp"},
	} {
		all[name] = definition{
			config: oci.Config{
				// Argo Workflows' Pods name their programs without a path.
				Env:        map[string]string{"PATH": "/usr/local/bin"},
				Entrypoint: []string{"/usr/local/bin/" + name}, User: "65534:65534", Ports: ports,
			},
			files: append([]oci.File{b.program(name, "usr/local/bin/"+name)}, common...),
		}
	}
	return all
}
