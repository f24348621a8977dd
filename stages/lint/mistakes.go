package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// foundMistake is a mistake with the object that has it, in Err, and where that is written.
type foundMistake struct {
	mistake
	contract.Unread // without a file where none has it, as when a patch makes it
}

// field is the name of the field; empty in a list.
func (f foundMistake) field() string {
	if len(f.Path) == 0 {
		return ""
	}
	name, _ := f.Path[len(f.Path)-1].(string)
	return name
}

// mistakesOf are those of objects that the files of a release at root are built to: a file, a
// directory or a kustomization; empty if there are none. See fieldMistakes.
func mistakesOf(release fs.FS, root string, objs []*unstructured.Unstructured) []foundMistake {
	all := sync.OnceValue(func() []*written { return allWritten(release, root) })
	var out []foundMistake
	for _, o := range objs {
		for _, m := range fieldMistakes(o) {
			found := foundMistake{m, contract.Unread{Err: fmt.Errorf("%s %s: %s", o.GetKind(), o.GetName(), m)}}
			if w := writtenBy(all(), o, m); w != nil {
				found.File, found.Line = w.file, w.line(m.Path)
			}
			out = append(out, found)
		}
	}
	return out
}

// written is an object as a file has it.
type written struct {
	*unstructured.Unstructured
	file     string
	node     *yaml.Node
	before   int       // lines of the file before the document
	mistakes []mistake // that are not taken for those of another object
}

// writtenBy is the object of a file that has that mistake of an object, which may have got a
// longer name since; nil if there is none. It counts once.
func writtenBy(all []*written, o *unstructured.Unstructured, m mistake) *written {
	same := func(has mistake) bool { return has.String() == m.String() }
	var from *written
	for _, w := range all {
		if w.GetKind() == o.GetKind() && strings.Contains(o.GetName(), w.GetName()) && slices.ContainsFunc(w.mistakes, same) &&
			(from == nil || len(w.GetName()) > len(from.GetName())) {
			from = w
		}
	}
	if from != nil {
		i := slices.IndexFunc(from.mistakes, same)
		from.mistakes = slices.Delete(from.mistakes, i, i+1)
	}
	return from
}

// allWritten are the objects with mistakes in the files at root, patches of kustomizations
// among them.
func allWritten(release fs.FS, root string) []*written {
	if root == "" {
		return nil
	}
	files := filesAt(release, root, map[string]bool{})
	for _, file := range files {
		dir := path.Dir(file)
		if file != render.Kustomization(release, dir) {
			continue
		}
		text, _ := render.ReadFile(release, file)
		var k types.Kustomization
		if yaml.Unmarshal(text, &k) != nil { // it has been built
			continue
		}
		for _, name := range patches(k) {
			if at := path.Join(dir, name); render.IsFile(release, at) && !slices.Contains(files, at) {
				files = append(files, at)
			}
		}
	}
	var out []*written
	for _, file := range files {
		text, _ := render.ReadFile(release, file) // it has been read before
		before := 0
		for _, doc := range split(text) {
			out = append(out, inDocument(file, doc, before)...)
			before += bytes.Count(doc, []byte("\n"))
		}
	}
	return out
}

// patches are the names of files with patches in a kustomization, in deprecated fields, too.
//
//nolint:staticcheck // SA1019: kustomize reads them
func patches(k types.Kustomization) []string {
	var out []string
	for _, p := range k.PatchesStrategicMerge {
		out = append(out, string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) {
		out = append(out, p.Path)
	}
	return out
}

// inDocument are the objects with mistakes of a document, before which the file has so many lines.
func inDocument(file string, doc []byte, before int) []*written {
	var root yaml.Node
	objs, err := kube.Decode(doc)
	if err != nil || yaml.Unmarshal(doc, &root) != nil || len(root.Content) == 0 { // a patch of another kind
		return nil
	}
	nodes := root.Content
	if i := keyOf(nodes[0], "items"); i >= 0 { // a list
		nodes = nodes[0].Content[i+1].Content
	}
	var out []*written
	for i, o := range objs {
		if bad := fieldMistakes(o); len(bad) > 0 && len(nodes) == len(objs) {
			out = append(out, &written{Unstructured: o, file: file, node: nodes[i], before: before, mistakes: bad})
		}
	}
	return out
}

// line is the line of the field at a path; where that comes from elsewhere in the document, as
// with an anchor, of what has it.
func (w *written) line(at []any) int {
	n, line := w.node, w.node.Line
	for _, part := range at {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		switch part := part.(type) {
		case int:
			if n.Kind != yaml.SequenceNode || part >= len(n.Content) {
				return w.before + line
			}
			n = n.Content[part]
			line = n.Line
		case string:
			i := keyOf(n, part)
			if i < 0 {
				return w.before + line
			}
			line = n.Content[i].Line
			n = n.Content[i+1]
		}
	}
	return w.before + line
}

// keyOf is where the content of a mapping has a key; -1 if it has none.
func keyOf(n *yaml.Node, name string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}
