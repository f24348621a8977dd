// Package facts tells what an install has made in a cluster, such that two installs of the
// same can be compared.
package facts

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Facts describe a cluster: a name, and what was found under it without everything that
// differs from one clean install to the next.
type Facts map[string]string

// Compare names every difference.
func (f Facts) Compare(got Facts) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(f)) {
		switch text, ok := got[name]; {
		case !ok:
			fmt.Fprintf(&b, "\n  %s is missing", name)
		case text != f[name]:
			fmt.Fprintf(&b, "\n  %s differs: %s", name, difference(f[name], text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := f[name]; !ok {
			fmt.Fprintf(&b, "\n  %s is there in addition", name)
		}
	}
	if b.Len() > 0 {
		return fmt.Errorf("it is not what a clean install makes:%s", b.String())
	}
	return nil
}

// difference shows where two texts part.
func difference(want, got string) string {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	from := max(0, at-40)
	return fmt.Sprintf("want …%s…, got …%s…", want[from:min(len(want), at+80)], got[from:min(len(got), at+80)])
}
