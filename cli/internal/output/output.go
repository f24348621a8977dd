// Package output has the flags that name a file to write. A path at which no file can be put
// is refused with the command line, before anything is done.
package output

import (
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// Var declares a flag for a file, or for a device or pipe that a file is written to.
func Var(set *pflag.FlagSet, path *string, name, value, usage string) {
	*path = value
	set.Var(&Path{path, true}, name, usage)
}

// Regular declares a flag for a file that nothing else can take the place of, as the command
// reads it too, writes beside it, or makes it in pieces.
func Regular(set *pflag.FlagSet, path *string, name, value, usage string) {
	*path = value
	set.Var(&Path{path, false}, name, usage)
}

// Path is the value of such a flag; "" and "-" are no paths.
type Path struct {
	path    *string
	streams bool
}

// Set takes a path.
func (p *Path) Set(path string) error {
	if path != "" && path != "-" && !(p.streams && atomicfile.IsStream(path)) {
		if _, err := atomicfile.Target(path); err != nil {
			return err
		}
	}
	*p.path = path
	return nil
}

// Type makes help show the flag as one for text.
func (*Path) Type() string { return "string" }

func (p *Path) String() string {
	if p.path == nil {
		return ""
	}
	return *p.path
}
