package survey

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
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
	inTheEnd = "Kubernetes refuses it, unless a run finds another value for it"
)

// fields notes the fields of a component's files that Kubernetes refuses. patches says that
// they are patches of objects that are not at hand.
func (v *surveyor) fields(c platform.Component, s render.Source, patches bool) {
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
func (v *surveyor) chartFields(c chart, opts render.ChartOptions, p rendered) {
	for _, m := range render.Mistakes(nil, "", p.objs) {
		if m.Unknown {
			text, _ := os.ReadFile(filepath.Join(c.dir, strings.TrimPrefix(p.file, c.path+"/"))) // which a packed chart has not
			m.Line = keyLine(text, m.Name)
		}
		if m.Unknown || v.everywhere(c, opts, m.Err) {
			v.mistake(c.component, p.file, m, leftOut)
		} else {
			v.doubt(c.component, p.file, m, inTheEnd)
		}
	}
}

// mistake notes a field of an object in a file of the release. unknown is what becomes of one
// that Kubernetes does not know; empty: it is refused.
func (v *surveyor) mistake(component, file string, m render.Mistake, unknown string) {
	if m.Unknown && unknown != "" {
		v.doubt(component, file, m, unknown)
		return
	}
	v.wrong(component, file, m.Line, m.Err)
}

func (v *surveyor) doubt(component, file string, m render.Mistake, becomes string) {
	u := contract.Unread{Component: component, File: file, Line: m.Line, Err: fmt.Errorf("%w; %s", m.Err, becomes)}
	if !listed(v.doubts, u) {
		v.doubts = append(v.doubts, u)
	}
}

// keyLine is the line of a template that has a key; 0 if none has, or several.
func keyLine(template []byte, key string) int {
	has := regexp.MustCompile(`^\s*(- +)*["']?` + regexp.QuoteMeta(key) + `["']?:`)
	found, n := 0, 0
	for line := range bytes.Lines(template) {
		n++
		switch {
		case !has.Match(line):
		case found > 0:
			return 0
		default:
			found = n
		}
	}
	return found
}
