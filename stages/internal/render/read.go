package render

import (
	"fmt"
	"io"
	"io/fs"
)

// maxFile is the largest file of a release that is read as manifests or values, in bytes: ten
// times the largest set of CRDs that is known.
const maxFile = 16 << 20

// readFile is fs.ReadFile that takes no more than maxFile into memory.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
	}
	if err := checkAliases(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
