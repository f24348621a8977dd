package containers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// folderLimit is the age from which nothing uses a folder of inFolder.
const folderLimit = 24 * time.Hour

const folderPrefix = "slipway-result-"

// inFolder calls do with a folder of this machine for what the engine exports, which may be secret. Call
// it once the export has nothing to wait for: a program that is killed leaves its folder behind. Those
// that killed programs have left are removed.
func inFolder(do func(dir string) error) (err error) {
	sweepFolders()
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return fmt.Errorf("make a folder for a result: %w", err)
	}
	defer func() {
		if left := os.RemoveAll(dir); left != nil {
			err = errors.Join(err, fmt.Errorf("remove a result from this machine: %w", left))
		}
	}()
	return do(dir)
}

// sweepFolders removes what it may of the folders that are left.
func sweepFolders() {
	entries, _ := os.ReadDir(os.TempDir()) // none, if that cannot be read
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name(), folderPrefix)
		if info, err := e.Info(); ours && err == nil && info.IsDir() && time.Since(info.ModTime()) > folderLimit {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), e.Name())) // another user's stays
		}
	}
}
