package render

import (
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
)

// maxFile is the largest file of a release that is read as manifests or values, in bytes: ten
// times the largest set of CRDs that is known.
const maxFile = 16 << 20

// readFile is fs.ReadFile for files of a release: of limited size, and with limited aliases.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	text, err := bounded.FS(fsys, name, maxFile)
	if err != nil {
		return nil, err
	}
	if err := document.CheckAliases(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
