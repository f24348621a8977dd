package lint

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// What becomes of fields that are doubted.
const (
	leftOut  = "Kubernetes leaves it out" // of what Helm and Argo CD send
	newer    = "Kubernetes %s does not know it, and refuses the object"
	lastOne  = "Kubernetes takes the last one"
	inTheEnd = "Kubernetes refuses it, unless a run finds another value for it"
)

// fields notes the fields of a component's files that Kubernetes refuses. patches says that
// they are patches of objects that are not at hand.
func (v *linter) fields(c platform.Component, s render.Source, patches bool) {
	root, file, line := s.Name, cmp.Or(render.Kustomization(v.release.Files(), s.Name), s.Name), 0
	if c.Bundle != "" {
		root, file, line = c.Path, platform.File, v.field(c.Name, "bundle")
	}
	unknown := ""
	if v.Guessed { // the cluster may be newer
		unknown = fmt.Sprintf(newer, v.Kubernetes)
	}
	for _, m := range render.Mistakes(v.release.Files(), root, s.Objects) {
		if patches && m.Unknown && strings.HasPrefix(m.Name, "$") { // what is to be done, such as $patch
			continue
		}
		if m.File == "" {
			m.File, m.Line = file, line
		}
		v.mistake(c.Name, m.File, m, unknown)
	}
}

// chartFields notes the fields of objects of a chart that Kubernetes refuses, or leaves out.
func (v *linter) chartFields(ctx context.Context, c chart, opts render.ChartOptions, p rendered) error {
	for _, m := range render.Mistakes(nil, "", p.objs) {
		if m.Unknown {
			text, _ := bounded.FS(c.files, path.Join(c.dir, strings.TrimPrefix(p.file, c.path+"/")), bounded.Generated) // which a packed chart has not
			m.Line = keyLine(text, m.Parent, m.Name)
		}
		switch {
		case m.Unknown && !c.strict:
			v.doubt(c.component, p.file, m, leftOut)
		case m.Lenient && !c.strict:
			v.doubt(c.component, p.file, m, lastOne)
		default:
			is, err := v.everywhere(ctx, c, opts, m.Err)
			if err != nil {
				return err
			}
			if is {
				v.wrong(c.component, p.file, m.Line, m.Err)
			} else {
				v.doubt(c.component, p.file, m, inTheEnd)
			}
		}
	}
	return nil
}

// keyTwice is how the decoder names a key that is in a mapping for the second time.
var keyTwice = regexp.MustCompile(`key "([^"]+)" already set in map`)

// duplicates notes keys that a chart renders twice into a mapping.
func (v *linter) duplicates(c chart, p rendered) {
	if p.twice == nil {
		return
	}
	for _, m := range keyTwice.FindAllStringSubmatch(p.twice.Error(), -1) {
		again := render.Mistake{Problem: render.Problem{Err: fmt.Errorf("the key %s is twice in a mapping", m[1])}}
		v.doubt(c.component, p.file, again, lastOne)
	}
}

// mistake notes a field of an object in a file of the release. unknown is what becomes of one
// that Kubernetes does not know; empty: it is refused.
func (v *linter) mistake(component, file string, m render.Mistake, unknown string) {
	if m.Unknown && unknown != "" {
		v.doubt(component, file, m, unknown)
		return
	}
	v.wrong(component, file, m.Line, m.Err)
}

func (v *linter) doubt(component, file string, m render.Mistake, becomes string) {
	u := contract.Unread{Component: component, File: file, Line: m.Line, Err: fmt.Errorf("%w; %s", m.Err, becomes)}
	if !listed(v.doubts, u) {
		v.doubts = append(v.doubts, u)
	}
}

// keyLine is the line of a template that has a key right below another one, or below none if
// parent is empty; 0 if it has the key nowhere, in several places, or elsewhere.
func keyLine(template []byte, parent, key string) int {
	lines := strings.Split(string(template), "\n")
	found := -1
	for n, line := range lines {
		if _, is := keyOf(line); is == key {
			if found >= 0 {
				return 0
			}
			found = n
		}
	}
	if found < 0 {
		return 0
	}
	in, _ := keyOf(lines[found])
	for n := found - 1; n >= 0; n-- {
		if at, above := keyOf(lines[n]); above != "" && at < in {
			if above == parent {
				return found + 1
			}
			return 0
		}
	}
	if parent == "" {
		return found + 1
	}
	return 0
}

// keyOf is the key that a line of YAML begins with, and its column; empty for none.
func keyOf(line string) (column int, key string) {
	m := hasKey.FindStringSubmatchIndex(line)
	if m == nil {
		return 0, ""
	}
	return m[2], line[m[2]:m[3]]
}

var hasKey = regexp.MustCompile(`^\s*(?:- +)*["']?([^\s"':{}#-][^\s"':{}]*)["']?:(?:\s|$)`)
