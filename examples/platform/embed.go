// Package platform contains the releases of Slipway's reference platform, which is
// installed unless the user names another one.
package platform

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

//go:embed all:1.0.0 all:1.1.0 all:2.0.0
var releases embed.FS

// Release returns the directory of a release: platform.yaml with charts, manifests and
// the GitOps tree. If version is not one of Versions, the error is a fault PLT-002.
func Release(version string) (fs.FS, error) {
	if !slices.Contains(Versions(), version) {
		return nil, &fault.Fault{
			Code: platform.CodeMissing, Class: fault.Usage, Op: "find the reference platform's release",
			Fix: "set platform.release to one of " + strings.Join(Versions(), ", ") +
				" or to the path of a platform release, then run slipway validate",
			Err: fmt.Errorf("there is no release %q", version),
		}
	}
	dir, err := fs.Sub(releases, version)
	if err != nil {
		return nil, fmt.Errorf("open release %s: %w", version, err)
	}
	return dir, nil
}

// Versions returns the versions of the releases, oldest first.
func Versions() []string { return []string{"1.0.0", "1.1.0", "2.0.0"} }
