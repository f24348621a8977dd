package lint

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

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
			m.Line = lineWith(c.files, path.Join(c.dir, strings.TrimPrefix(p.file, c.path+"/")), m.Name)
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
	note(&v.doubts, contract.Unread{Component: component, File: file, Line: m.Line, Err: fmt.Errorf("%w; %s", m.Err, becomes)})
}
