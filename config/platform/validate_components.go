package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

func (v *validator) components() {
	for i, c := range v.r.Components {
		field := fmt.Sprintf("components[%d]", i)
		if c.Kind != Gate && c.Namespace == "" {
			v.namespace(field+".namespace", "")
		}
		if c.Required && !c.Enabled {
			v.Add(field+".enabled", "false", "true, because the component is required")
		}
		if c.Required && c.Optional {
			v.Add(field+".optional", "true", "false, because the component is required")
		}
		if j := slices.Index(c.Needs, c.Name); j >= 0 {
			v.Add(fmt.Sprintf("%s.needs[%d]", field, j), document.Quote(c.Name), "another component than this one")
		}
		v.kind(field, c)
		v.after(field, c)
		v.chart(field, c)
		if c.Node != nil && !c.HasChart() && c.Kind != Manifests && c.Kind != Job {
			v.Add(field+".node", "a value", "none for "+string(c.Kind)+": it has no pods of its own")
		}
		v.gates(field, c.Ready)
	}
	v.cycles()
}

func (v *validator) kind(field string, c Component) {
	unwanted := func(name string, has bool, want string) {
		if has {
			v.Add(field+"."+name, "a value", "none for "+string(c.Kind)+": "+want)
		}
	}
	if !slices.Contains(Kinds(), string(c.Kind)) {
		return // which fields has reported
	}
	if c.Kind != Manifests {
		unwanted("bundle", c.Bundle != "", "manifests of the bundle have the kind manifests")
	}
	if c.Kind != AppSet {
		unwanted("empty", c.Empty, "it is for appsets that may bring no Application")
	}
	if c.Kind != App {
		unwanted("wave", c.Wave != 0, "after says what comes before it")
	}
	switch c.Kind {
	case Gate:
		unwanted("path", c.Path != "", "nothing is installed")
		if len(c.Ready) == 0 {
			v.Add(field+".ready", "nothing", "at least one gate")
		}
		return
	case App:
		unwanted("optional", c.Optional, "Argo CD brings no later wave before it is Healthy")
		unwanted("ready", len(c.Ready) > 0, "Argo CD says when it is Healthy; a component of kind gate waits for more")
		unwanted("hosts", len(c.Hosts) > 0, "its chart has the pods")
		v.inTree(field+".path", c)
	case Adopted:
		unwanted("hosts", len(c.Hosts) > 0, "Argo CD would take them out of the pods again")
		v.inTree(field+".path", c)
	}
	if c.Kind == App {
		v.notEngines(field+".namespace", c.Namespace)
	}
	if v.r.GitOps == nil && slices.Contains(byGitOps(), c.Kind) {
		v.Add(field+".kind", string(c.Kind)+" without gitops", "gitops, which says what brings apps about")
	}
	if c.Bundle != "" {
		v.Match(field+".bundle", c.Bundle, imageRE, "a directory of the bundle's manifests such as argocd")
		if c.Path == "" {
			return
		}
	}
	v.content(field+".path", c)
}

// byGitOps are the kinds that need a GitOps engine.
func byGitOps() []Kind { return []Kind{App, AppSet, Adopted} }

// inTree checks that what the GitOps engine reads is in its tree.
func (v *validator) inTree(field string, c Component) {
	if g := v.r.GitOps; g != nil && c.Path != "" && g.Tree != "." && !strings.HasPrefix(c.Path, g.Tree+"/") {
		v.Add(field, document.Quote(c.Path), "a directory below "+g.Tree+", the GitOps tree")
	}
}

// content checks that a component's files are there.
func (v *validator) content(field string, c Component) {
	want := map[Kind]string{Chart: "the directory of a chart", Adopted: "the directory of a chart", App: "a directory", Job: "a file or directory with a Job", AppSet: "a file or directory with ApplicationSets", Manifests: "a directory or file with manifests"}[c.Kind] +
		" of the release, as a relative path"
	if c.Path == "" {
		v.Add(field, "nothing", want)
		return
	}
	info := v.stat(field, c.Path, want)
	switch {
	case info == nil:
	case c.HasChart():
		if _, err := fs.Stat(v.fsys, path.Join(c.Path, "Chart.yaml")); err != nil {
			v.Add(field, document.Quote(c.Path)+", which has no Chart.yaml", want)
		}
	case c.Kind == App && !info.IsDir():
		v.Add(field, document.Quote(c.Path)+", which is no directory", want)
	case c.Kind != App && info.IsDir() && !hasManifests(v.fsys, c.Path):
		v.Add(field, document.Quote(c.Path)+", which has no YAML file", want)
	}
}

// hasManifests reports whether a directory has a file that can hold objects.
func hasManifests(fsys fs.FS, dir string) bool {
	entries, _ := fs.ReadDir(fsys, dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && IsManifest(e.Name()) })
}

// IsManifest reports whether a file of that name holds objects.
func IsManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// stat returns what is at a path of the release; nil, with a problem, if nothing is.
func (v *validator) stat(field, name, want string) fs.FileInfo {
	if !fs.ValidPath(name) || strings.Contains(name, `\`) {
		v.Add(field, document.Quote(name), want)
		return nil
	}
	info, err := fs.Stat(v.fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.Add(field, document.Quote(name)+", which does not exist", want)
	case err != nil:
		v.Add(field, document.Quote(name)+", which cannot be read", want)
	default:
		return info
	}
	return nil
}

// file reports that a file of the release will not do.
func (v *validator) file(field, name string, err error, want string) {
	if errors.Is(err, fs.ErrNotExist) {
		v.Add(field, document.Quote(name)+", which does not exist", want)
		return
	}
	v.Add(field, document.Quote(name)+" ("+err.Error()+")", want)
}

func (v *validator) after(field string, c Component) {
	for j, name := range c.After {
		at := fmt.Sprintf("%s.after[%d]", field, j)
		before := v.r.component(name)
		switch {
		case before == nil:
			v.Add(at, document.Quote(name), componentWant)
		case name == c.Name:
			v.Add(at, document.Quote(name), "another component than this one")
		case c.Kind == App && before.Kind == App:
			v.Add(at, document.Quote(name)+", which is an app", "a component that is none; apps follow each other by wave")
		}
	}
}

func (v *validator) chart(field string, c Component) {
	if !c.HasChart() {
		const want = "none unless kind is chart or adopted"
		if c.Values != nil {
			v.Add(field+".values", "values", want)
		}
		if c.ValuesFiles != nil {
			v.Add(field+".valuesFiles", "values", want)
		}
		return
	}
	if len(c.Values) > 0 && c.Values[0] != '{' {
		v.Add(field+".values", "something else", "a mapping of the chart's values")
	}
	var more []string
	if v.r.GitOps != nil && c.Kind == Chart && !slices.Contains(v.r.Foundation(), c.Name) {
		more = TreeNames()
	}
	config.EachText(c.Values, field+".values", func(at, _, text string) { v.filled(at, text, more...) })
	for j, file := range c.ValuesFiles {
		at := fmt.Sprintf("%s.valuesFiles[%d]", field, j)
		v.holes(at, file, FillScale)
		for _, profile := range config.Profiles() {
			name := Fill(file, map[string]string{FillScale: profile.Name()})
			if info := v.stat(at, name, "a file of the release for every scale, as a relative path"); info != nil && info.IsDir() {
				v.Add(at, document.Quote(name)+", which is a directory", "a file")
			}
			if name == file {
				break
			}
		}
	}
}

// cycles finds components that come after themselves. All apps are one: what comes after
// one of them waits for all.
func (v *validator) cycles() {
	v.ordered(func(path []string) {
		at := slices.IndexFunc(v.r.Components, func(c Component) bool { return v.vertex(c.Name) == path[0] })
		if len(path) > 2 { // after has reported a component that comes after itself
			v.Add(fmt.Sprintf("components[%d].after", at), "a cycle: "+strings.Join(path, " after "), "an order without a cycle")
		}
	})
}

// ordered returns the vertices, each after those that it comes after, and calls cycle with the way
// from each to itself.
func (v *validator) ordered(cycle func(path []string)) []string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var out []string
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		switch state[name] {
		case done:
			return
		case visiting:
			cycle(append(slices.Clone(path[slices.Index(path, name):]), name))
			return
		}
		state[name] = visiting
		for _, before := range v.before(name) {
			visit(before, append(slices.Clone(path), name))
		}
		state[name] = done
		out = append(out, name)
	}
	for _, c := range v.r.Components {
		visit(v.vertex(c.Name), nil)
	}
	return out
}

// theApps stands for all apps in cycles.
const theApps = "the apps"

// vertex is a component's name, or theApps.
func (v *validator) vertex(name string) string {
	if c := v.r.component(name); c != nil && c.Kind == App {
		return theApps
	}
	return name
}

// before are the nodes that a node comes after.
func (v *validator) before(node string) []string {
	var out []string
	for _, c := range v.r.Components {
		if v.vertex(c.Name) != node {
			continue
		}
		for _, name := range c.After {
			if b := v.vertex(name); v.r.component(name) != nil && !slices.Contains(out, b) && b != theApps || b == theApps && node != theApps {
				out = append(out, b)
			}
		}
	}
	c := v.r.component(node)
	if g := v.r.GitOps; g != nil && (node == theApps || c != nil && (c.Kind == AppSet || c.NamesTree())) { // whose Applications the engine reads from the server
		out = append(out, g.Engine)
		if g.Server != nil {
			out = append(out, g.Server.Component)
		}
	}
	return out
}
