package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// directory is a backend of plain files whose paths are their keys. The name of a file that a
// killed writer has not finished is no key. gocloud.dev's fileblob is not used: its create is not
// atomic but checks before it renames, it does not sync, and its list includes unfinished files
// and skips unreadable directories.
type directory struct {
	root  *os.Root
	files atomicfile.Dir // on root
}

// openDirectory opens dir, creating it if necessary.
func openDirectory(dir string) (*directory, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
	} else if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := atomicfile.SyncDir(filepath.Dir(dir)); err != nil { // so that it survives a crash
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &directory{root, atomicfile.Dir{Root: root}}, nil
}

// Close closes the directory.
func (d *directory) Close() error { return d.root.Close() }

func (d *directory) get(ctx context.Context, key string) (data []byte, err error) {
	info, err := d.root.Lstat(key) // before opening, as that would block on a pipe
	switch {
	case absent(err), err == nil && info.IsDir():
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotFile
	}
	f, err := d.root.Open(key)
	if absent(err) {
		return nil, fs.ErrNotExist
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return bounded.Read(f, MaxBytes)
}

func (d *directory) put(ctx context.Context, key string, data []byte, ifAbsent bool) error {
	if err := d.files.MakeAll(path.Dir(key)); err != nil {
		return err
	}
	if ifAbsent { // a shortcut; only Create decides
		if _, err := d.root.Lstat(key); err == nil {
			return ErrExists
		}
	}
	if !ifAbsent {
		return d.files.Replace(ctx, key, data, 0o600)
	}
	err := d.files.Create(ctx, key, data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	return err
}

func (d *directory) remove(ctx context.Context, key string) error {
	info, err := d.root.Lstat(key)
	if absent(err) || err == nil && info.IsDir() {
		return nil
	} else if err != nil {
		return err
	}
	return d.files.Remove(key)
}

func (d *directory) list(ctx context.Context, prefix string) ([]string, error) {
	from := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		from = prefix[:i]
	}
	var keys []string
	err := fs.WalkDir(d.root.FS(), from, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case absent(err):
			return nil
		case err != nil:
			return err
		case name == from && e.IsDir():
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") || !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/")):
			return fs.SkipDir
		case e.Type().IsRegular() && strings.HasPrefix(name, prefix) && !strings.HasPrefix(e.Name(), "."):
			keys = append(keys, name)
		}
		return nil
	})
	return keys, err
}

// absent reports whether err means that there is no such file, which includes that a
// parent in its path is a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
