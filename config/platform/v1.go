package platform

import (
	_ "embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
)

//go:embed v1/argocd-first.yaml
var argoFirst []byte

//go:embed v1/argocd-last.yaml
var argoLast []byte

// What a release of version V1 took for granted: a git server, the chart gitea, and Argo
// CD from the bundle.
const (
	v1Gitea     = "gitea"
	v1Argo      = "argocd"
	v1GiteaText = `{host: "gitea.{domain}", scale: "{scale}", storageClass: "{storageClass}", tls: {secretName: gitea-tls}}`
	v1Secrets   = `[{name: argocd-redis, namespace: argocd, keys: [{key: auth, generate: password}]}]`
	v1Maps      = `[{name: outgoing-proxy, namespace: argocd, data: {HTTP_PROXY: "{proxy.http}", HTTPS_PROXY: "{proxy.https}", NO_PROXY: "{proxy.none}"}}]`
	v1Certs     = `[{secret: gitea/gitea-tls, hosts: ["*.{domain}", "{domain}", gitea.gitea.svc, gitea.gitea.svc.cluster.local]}]`
	v1GitOps    = `engine: argocd
server:
  component: gitea
  service: gitea/gitea:443
  hosts: [gitea.gitea.svc, "gitea.{domain}"]
  repository: slipway/platform
  accounts: {administrator: gitea/gitea-admin, writer: gitea/gitea-slipway, reader: gitea/gitea-slipway}
`
)

// fromV1 turns the root of a release of version V1 into one of the current version.
func fromV1(root *yaml.Node, fsys fs.FS) {
	set(root, "apiVersion", APIVersion)
	apps, git := false, false
	var argo *yaml.Node
	for _, c := range items(root, "components") {
		name, kind := text(c, "name"), text(c, "kind")
		switch {
		case kind == string(App):
			apps = true
		case kind != "bootstrap":
		case text(c, "bundle") != "":
			set(c, "kind", string(Manifests))
			if text(c, "namespace") == v1Argo {
				argo = c
			}
		case isChart(fsys, text(c, "path")):
			set(c, "kind", string(Chart))
			if name == v1Gitea {
				git = true
				put(c, "values", v1GiteaText)
				_, values := document.Find(c, "values")
				values.Content = append(values.Content, scalar("images"), imageValues(c))
			}
		default:
			set(c, "kind", string(Manifests))
		}
	}
	tree := text(root, "gitops")
	if key, _ := document.Find(root, "gitops"); key != nil {
		document.Cut(root, key)
	}
	if git {
		join(root, "certificates", v1Certs)
	}
	if argo != nil {
		join(root, "secrets", v1Secrets)
		join(root, "configMaps", v1Maps)
	}
	if git && argo != nil {
		put(argo, "hosts", `{"gitea.{domain}": gitea/gitea}`)
	}
	if apps && git && argo != nil {
		put(root, "gitops", v1GitOps)
		_, g := document.Find(root, "gitops")
		if tree != "" {
			set(g, "tree", tree)
		}
		v1Project(g, root, fsys)
	}
}

// addV1Patches adds what Slipway itself changed in Argo CD's manifests.
func (r *Release) addV1Patches() {
	for i := range r.Components {
		if c := &r.Components[i]; c.Bundle != "" && c.Namespace == v1Argo {
			c.first, c.last = argoFirst, argoLast
		}
	}
}

// v1Project takes over what the release's AppProject allows outside of namespaces.
func v1Project(gitops, root *yaml.Node, fsys fs.FS) {
	for _, c := range items(root, "components") {
		if text(c, "namespace") != v1Argo || text(c, "path") == "" {
			continue
		}
		names, _ := fs.Glob(fsys, path.Join(text(c, "path"), "*.yaml"))
		for _, name := range names {
			if kinds := clusterKinds(fsys, name); len(kinds) > 0 {
				put(gitops, "project", "{name: platform, clusterKinds: []}")
				_, project := document.Find(gitops, "project")
				_, list := document.Find(project, "clusterKinds")
				for _, kind := range kinds {
					list.Content = append(list.Content, scalar(kind))
				}
				return
			}
		}
	}
}

// clusterKinds are those that the AppProject in a file allows.
func clusterKinds(fsys fs.FS, name string) []string {
	data, err := bounded.FS(fsys, name, bounded.Generated)
	if err != nil {
		return nil // it is reported as the content of its component
	}
	var project struct {
		Kind string
		Spec struct {
			ClusterResourceWhitelist []struct{ Group, Kind string } `yaml:"clusterResourceWhitelist"`
		}
	}
	if document.CheckAliases(data) != nil {
		return nil // as well
	}
	if err := yaml.Unmarshal(data, &project); err != nil || project.Kind != "AppProject" {
		return nil
	}
	var out []string
	for _, k := range project.Spec.ClusterResourceWhitelist {
		out = append(out, strings.TrimPrefix(k.Group+"/"+k.Kind, "/"))
	}
	return out
}

// imageValues are the values for the images that a component names.
func imageValues(c *yaml.Node) *yaml.Node {
	out := parsed("{}")
	for _, i := range items(c, "images") {
		out.Content = append(out.Content, scalar(i.Value), scalar("{images."+i.Value+"}"))
	}
	return out
}

func isChart(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, path.Join(dir, "Chart.yaml"))
	return err == nil
}

// text is the text of a mapping's field; empty if it has none.
func text(n *yaml.Node, field string) string {
	if _, v := document.Find(n, field); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// items are those of the list in a mapping's field.
func items(n *yaml.Node, field string) []*yaml.Node {
	if _, v := document.Find(n, field); v != nil && v.Kind == yaml.SequenceNode {
		return v.Content
	}
	return nil
}

// set gives a mapping's field a text, and keeps its line if it is there.
func set(n *yaml.Node, field, value string) {
	if _, v := document.Find(n, field); v != nil && v.Kind == yaml.ScalarNode {
		v.Value, v.Tag, v.Style = value, "!!str", 0
		return
	}
	n.Content = append(n.Content, scalar(field), scalar(value))
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// put gives a mapping a field with the YAML value, which is this package's: none of it is a
// release's, whose text could be other YAML.
func put(n *yaml.Node, field, value string) {
	n.Content = append(n.Content, scalar(field), parsed(value))
}

// join adds the items of the YAML list to those of a mapping's field.
func join(n *yaml.Node, field, list string) {
	add := parsed(list)
	if _, v := document.Find(n, field); v != nil && v.Kind == yaml.SequenceNode {
		v.Content = append(slices.Clone(v.Content), add.Content...)
		return
	}
	n.Content = append(n.Content, scalar(field), add)
}

func parsed(value string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil {
		panic("platform: " + err.Error()) // it is this package's own
	}
	return doc.Content[0]
}
