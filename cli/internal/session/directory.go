package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// Directory is a directory of this machine, for the engine, or the one whose id is in idFile. With fresh
// the engine reads it again although the session may have read it before.
func Directory(client *dagger.Client, path, idFile string, fresh bool) (*dagger.Directory, error) {
	if idFile != "" {
		id, err := bounded.File(idFile, bounded.Written)
		if err != nil {
			return nil, fmt.Errorf("read the directory's id: %w", err)
		}
		return client.LoadDirectoryFromID(dagger.DirectoryID(id)), nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return nil, &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "open " + path,
			Fix: "give the path of a directory that exists", Err: err}
	}
	return client.Host().Directory(abs, dagger.HostDirectoryOpts{NoCache: fresh}), nil
}
