package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// configFiles are the configuration of the components, and their flags, one a line, as templates.
//
//go:embed config
var configFiles embed.FS

// render fills in a file of config. more are values besides those that all files have. A file that
// cannot be filled in is a bug.
func (s settings) render(name string, more map[string]any) string {
	values := map[string]any{
		"nodeName": nodeName, "nodeAddress": nodeAddress, "serviceCIDR": serviceCIDR, "dnsServiceIP": dnsServiceIP, "podCIDR": podCIDR,
		"clusterDomain": clusterDomain, "apiPort": apiPort, "runDir": runDir, "criSocket": criSocket,
		"containerdConfig": containerdConfig, "cniConfigDir": cniConfigDir, "registryDir": registryDir,
		"etcd": "https://127.0.0.1:2379", "etcdPeer": "https://127.0.0.1:2380",
		"clusterName": s.ClusterName, "pauseImage": s.PauseImage,
	}
	for key, value := range more {
		values[key] = value
	}
	file := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"pki": s.pki, "file": s.file, "quote": strconv.Quote})
	var text strings.Builder
	if err := template.Must(file.ParseFS(configFiles, "config/"+name)).Execute(&text, values); err != nil {
		panic(err)
	}
	return text.String()
}

// component is a program of the node: one of its own, or one of Kubernetes', which this program,
// self, is.
func (s settings) component(name, self string) command {
	c := command{name: name, program: name, stop: time.Second}
	if !slices.Contains([]string{"etcd", "containerd"}, name) {
		c.program, c.args = self, []string{name}
	}
	switch name {
	case "etcd", "containerd":
		c.stop = 2 * time.Second
	case "kube-apiserver":
		c.stop = 1500 * time.Millisecond
	}
	for line := range strings.Lines(s.render(name+".flags", nil)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			c.args = append(c.args, line)
		}
	}
	return c
}

func writeComponentConfigs(s settings) error {
	if err := os.MkdirAll(s.file("kubelet"), 0o755); err != nil {
		return fmt.Errorf("make the kubelet's directory: %w", err)
	}
	for _, name := range []string{"kubelet.yaml", "scheduler.yaml", "proxy.yaml"} {
		if err := writeFile(filepath.Join(runDir, name), []byte(s.render(name, nil)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
