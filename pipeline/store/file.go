package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// directory is a backend of plain files whose paths are their keys. The name of a file that a killed
// writer has not finished is no key. The layout is that
// of gocloud.dev's fileblob without metadata. fileblob itself is not used: its create
// is not atomic but checks before it renames, it does not sync, and its list includes
// unfinished files and skips unreadable directories.
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
	case info.Size() > MaxBytes:
		return nil, fmt.Errorf("%d bytes: %w", info.Size(), errTooLarge)
	}
	f, err := d.root.Open(key)
	if absent(err) {
		return nil, fs.ErrNotExist
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = errTooLarge
	}
	return data, err
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
	return d.walk(ctx, from, prefix, nil)
}

// walk appends the files below dir that begin with prefix.
func (d *directory) walk(ctx context.Context, dir, prefix string, keys []string) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	entries, err := d.entries(dir)
	if absent(err) {
		return keys, nil
	} else if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && (strings.HasPrefix(name+"/", prefix) || strings.HasPrefix(prefix, name+"/")):
			if keys, err = d.walk(ctx, name, prefix, keys); err != nil {
				return nil, err
			}
		case e.Type().IsRegular() && strings.HasPrefix(name, prefix):
			keys = append(keys, name)
		}
	}
	return keys, nil
}

func (d *directory) entries(dir string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

// absent reports whether err means that there is no such file, which includes that a
// parent in its path is a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
