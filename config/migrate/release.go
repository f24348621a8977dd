package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/document"
)

// Step is what a release of the platform changed in what users write for it.
type Step struct {
	Version string            // of that release
	Move    map[string]string // fields that are elsewhere now, by their paths before
	Remove  []string          // fields that are no more
}

// From are the fields that are no more where they were.
func (s Step) From() []string { return append(slices.Sorted(maps.Keys(s.Move)), s.Remove...) }

// Back are the steps that put what steps moved where it was. What they removed stays away.
func Back(steps []Step) []Step {
	var out []Step
	for _, s := range slices.Backward(steps) {
		back := Step{Version: s.Version, Move: map[string]string{}}
		for from, to := range s.Move {
			back.Move[to] = from
		}
		out = append(out, back)
	}
	return out
}

// Release carries steps out on the root of a file of the current version, and returns the
// changes. What cannot be moved, since there is something already, is a problem that names
// both places; the file is then not to be used.
func Release(root *yaml.Node, steps []Step) (changes []Change, problems []document.Problem) {
	f := &file{root: root}
	for _, s := range steps {
		for _, from := range slices.Sorted(maps.Keys(s.Move)) {
			if p := f.relocate(s.Version, from, s.Move[from]); p != nil {
				problems = append(problems, *p)
			}
		}
		for _, path := range s.Remove {
			f.remove(path)
		}
	}
	return f.changes, problems
}

// relocate moves a field, unless there is one at the new path, or something around that
// which can hold none.
func (f *file) relocate(version, from, to string) *document.Problem {
	key, _ := document.Find(f.root, from)
	if key == nil {
		return nil
	}
	if taken, _ := document.Find(f.root, to); taken != nil {
		return &document.Problem{
			Field: from, Line: key.Line, Got: fmt.Sprintf("a value beside %s (line %d), which is its name since release %s", to, taken.Line, version),
			Want: "one of them",
		}
	}
	in, _ := f.parent(from)
	before := len(f.changes)
	if f.move(from, to); len(f.changes) == before {
		return &document.Problem{
			Field: from, Line: key.Line, Got: "a value whose place is " + to + " since release " + version + ", where something else is around it",
			Want: "a mapping around " + to,
		}
	}
	f.prune(from, in)
	return nil
}

// remove cuts a field out.
func (f *file) remove(path string) {
	in, name := f.parent(path)
	key, _ := document.Find(in, name)
	if key == nil {
		return
	}
	document.Cut(in, key)
	f.changes = append(f.changes, Change{From: path, Line: key.Line})
	f.prune(path, in)
}

// prune removes the mappings around a field that is gone which have nothing in them any more.
func (f *file) prune(path string, in *yaml.Node) {
	for in != f.root && len(in.Content) == 0 {
		path = path[:strings.LastIndexByte(path, '.')]
		around, name := f.parent(path)
		key, _ := document.Find(around, name)
		document.Cut(around, key)
		in = around
	}
}

// Set gives a field of the file a text, and adds that to changes if it had another one.
func Set(root *yaml.Node, path, text string, changes []Change) []Change {
	f := &file{root: root, changes: changes}
	_, v := document.Find(root, path)
	switch {
	case v == nil:
		at := strings.LastIndexByte(path, '.')
		into := f.mapping(path[:at], nil, &yaml.Node{})
		if into == nil {
			return changes
		}
		into.Content = append(into.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: path[at+1:]}, scalar(text))
		return append(changes, Change{From: path, To: path, New: text})
	case v.Value == text:
		return changes
	}
	change := Change{From: path, To: path, Old: v.Value, New: text, Line: v.Line}
	v.SetString(text)
	return append(changes, change)
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}
