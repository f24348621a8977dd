package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// Purge removes everything but the records of the runs, the lock, and what only a person can
// deal with (see PutUnsaved): after a removal nothing may be reused. That is so in the store,
// and in the volume where that is not the store. It ends at once when the lock is lost, and
// leaves what a later holder has written.
func Purge(ctx context.Context, p Backend, w *Work) error {
	keys, err := w.Store.List(ctx, "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		first, _, _ := strings.Cut(key, "/")
		if stays(first) || w.later(key) {
			continue
		}
		if err := w.Store.Delete(ctx, key); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(p.Volume)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if stays(e.Name()) {
			continue
		}
		if err := w.Held(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, w.sweep(filepath.Join(p.Volume, e.Name())))
	}
	return errors.Join(errs...)
}

// stays reports whether what has a name in the state outlasts a deployment.
func stays(name string) bool {
	return name == runsDir || name == latestDir || name == lockDir || name == unsavedDir
}

// later reports whether a key or a file is a version of a later holder.
func (w *Work) later(name string) bool {
	g, ok := store.Generation(filepath.ToSlash(name))
	return ok && g > w.Generation
}

// sweep removes a file or a directory, but for the versions of later holders.
func (w *Work) sweep(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		if err != nil || w.later(path) {
			return err
		}
		return os.Remove(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, w.sweep(filepath.Join(path, e.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}
