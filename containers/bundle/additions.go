package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/folder"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// Additions is a directory of the user's, out of reach of whoever writes a bundle, that
// remembers which bundle `slipway bundle add` made of which: who wants the one wants the
// other. The empty one remembers nothing. Several processes may use it at the same time.
type Additions string

// OwnAdditions are those of the user who runs this program.
func OwnAdditions() (Additions, error) {
	dir, err := folder.Default()
	if err != nil {
		return "", fmt.Errorf("find the user's configuration folder: %w", err)
	}
	if dir == "" {
		return "", nil
	}
	return Additions(filepath.Join(dir, "bundles")), nil
}

// Keep remembers that the bundle with the index after was made of the one with the index
// before; both are digests.
func (a Additions) Keep(before, after string) error {
	if a == "" || before == after {
		return nil
	}
	name, err := a.file(after)
	if err == nil {
		err = os.MkdirAll(string(a), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(name, []byte(before+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("remember what the bundle was made of: %w", err)
	}
	return nil
}

// Made reports whether the bundle with the index after was made of the one with the index
// before, in any number of steps.
func (a Additions) Made(before, after string) (bool, error) {
	for seen := map[string]bool{}; a != "" && !seen[after]; {
		seen[after] = true
		name, err := a.file(after)
		if err != nil {
			return false, err
		}
		text, err := bounded.File(name, bounded.Written)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read what the bundle was made of: %w", err)
		}
		if after = strings.TrimSpace(string(text)); after == before {
			return true, nil
		}
	}
	return false, nil
}

func (a Additions) file(digest string) (string, error) {
	if !IsDigest(digest) {
		return "", fmt.Errorf("%q is no digest", digest)
	}
	return filepath.Join(string(a), strings.TrimPrefix(digest, "sha256:")), nil
}
