package lint

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// problemsOf are what is wrong with the files of a component, which is a file, a directory or
// a kustomization: every document that is no YAML or no object. Where files are well, and
// nevertheless a kustomization cannot be built of them, there are none.
func problemsOf(release fs.FS, name string) []contract.Unread {
	var out []contract.Unread
	for _, file := range filesAt(release, name, map[string]bool{}) {
		text, err := render.ReadFile(release, file)
		switch {
		case err != nil:
			out = append(out, contract.Unread{File: file, Err: err})
		case file == render.Kustomization(release, path.Dir(file)):
			out = append(out, noYAML(file, text, 1)...)
		default:
			out = append(out, noObjects(file, text, kube.Decode)...)
		}
	}
	return out
}

// noValues is what is wrong with a file of a release that has values of a chart.
func noValues(release fs.FS, file string) []contract.Unread {
	text, err := render.ReadFile(release, file)
	if err != nil {
		return []contract.Unread{{File: file, Err: err}}
	}
	var out []contract.Unread
	_, problems := document.Values(text)
	for _, p := range problems {
		line := max(p.Line, 1)
		p.Line = 0
		out = append(out, contract.Unread{File: file, Line: line, Err: errors.New(p.String())})
	}
	return out
}

// filesAt are the files that objects at name are read from, with those that make
// directories kustomizations. seen are the directories that have been looked at.
func filesAt(release fs.FS, name string, seen map[string]bool) []string {
	info, err := fs.Stat(release, name)
	if err != nil || seen[name] {
		return nil
	}
	if !info.IsDir() {
		return []string{name}
	}
	seen[name] = true
	var out []string
	if file := render.Kustomization(release, name); file != "" {
		out = append(out, file)
		text, _ := render.ReadFile(release, file)
		var k types.Kustomization
		if yaml.Unmarshal(text, &k) != nil {
			return out
		}
		for _, from := range slices.Concat(k.Resources, k.Components) {
			out = append(out, filesAt(release, path.Join(name, from), seen)...)
		}
		return out
	}
	_ = fs.WalkDir(release, name, func(file string, entry fs.DirEntry, err error) error { // it has been read before
		if err == nil && !entry.IsDir() && platform.IsManifest(file) {
			out = append(out, file)
		}
		return err
	})
	return out
}

// noYAML is what is wrong with a text that begins in a line of a file.
func noYAML(file string, text []byte, line int) []contract.Unread {
	var n yaml.Node
	err := yaml.Unmarshal(text, &n)
	if err == nil {
		return nil
	}
	p := document.Syntax(text, err)
	if p.Line == 0 {
		p.Line = 1
	}
	return []contract.Unread{{File: file, Line: line + p.Line - 1, Err: errors.New(p.Reason())}}
}

// noObjects is what is wrong with the documents of a file.
func noObjects(file string, text []byte, decode func([]byte) ([]*unstructured.Unstructured, error)) []contract.Unread {
	var out []contract.Unread
	line := 1
	for _, doc := range split(text) {
		if _, err := decode(doc); err != nil {
			more := noYAML(file, doc, line)
			if more == nil {
				more = []contract.Unread{noObject(file, doc, line, err)}
			}
			out = append(out, more...)
		}
		line += bytes.Count(doc, []byte("\n"))
	}
	return out
}

// split takes the documents of a text apart. Each but the first begins with its separator.
func split(text []byte) [][]byte {
	var out [][]byte
	var doc []byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("---")) && len(doc) > 0 {
			out, doc = append(out, doc), nil
		}
		doc = append(doc, line...)
	}
	return append(out, doc)
}

// yamlLine is how the decoder names a line of a document, and what is wrong there.
var yamlLine = regexp.MustCompile(`line (\d+): ([^\n]+)`)

// noObject is why a document that is YAML is no object: err is the decoder's.
func noObject(file string, doc []byte, line int, err error) contract.Unread {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return contract.Unread{File: file, Line: line + n - 1, Err: errors.New(m[2])}
	}
	for l := range bytes.Lines(doc) { // to where it begins
		if l = bytes.TrimSpace(l); len(l) > 0 && l[0] != '#' && !bytes.HasPrefix(l, []byte("---")) {
			break
		}
		line++
	}
	why := strings.TrimPrefix(err.Error(), "document 1: ")
	if strings.Contains(why, "cannot unmarshal") {
		why = "it is no mapping"
	}
	return contract.Unread{File: file, Line: line, Err: errors.New("no object: " + why)}
}

// noDefinitions are what is wrong with a chart's directory crds, and with those of the charts
// that it depends on. The paths of files begin with the chart's name, as Helm's do.
func noDefinitions(ch *helmchart.Chart) []contract.Unread {
	var out []contract.Unread
	for _, d := range ch.CRDObjects() {
		out = append(out, noObjects(d.Filename, d.File.Data, kube.DecodeRendered)...)
	}
	return out
}
