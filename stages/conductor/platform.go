package conductor

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config/platform"
)

// UsePlatform loads the platform release in files and hands it to the engine of o.Client.
func (o *Options) UsePlatform(ctx context.Context, files fs.FS) error {
	return inTemporary(func(dir string) error {
		if err := os.CopyFS(dir, files); err != nil {
			return fmt.Errorf("unpack the platform release: %w", err)
		}
		var err error
		if o.ReleaseDir, err = o.Client.Host().Directory(dir).Sync(ctx); err != nil {
			return fmt.Errorf("hand the platform release to the engine: %w", err)
		}
		return o.loadRelease(os.DirFS(dir))
	})
}

// UsePlatformDir loads the platform release in a directory of the engine.
func (o *Options) UsePlatformDir(ctx context.Context, release *dagger.Directory) error {
	return inTemporary(func(dir string) error {
		if _, err := release.Export(ctx, dir); err != nil {
			return fmt.Errorf("read the platform release: %w", err)
		}
		o.ReleaseDir = release
		return o.loadRelease(os.DirFS(dir))
	})
}

// loadRelease loads the release into memory: others read it longer than files exist.
func (o *Options) loadRelease(files fs.FS) (err error) {
	if o.ReleaseDigest, err = platform.Digest(files); err != nil {
		return err
	}
	held, err := inMemory(files)
	if err != nil {
		return fmt.Errorf("read the platform release: %w", err)
	}
	o.Release, err = platform.Load(held)
	return err
}

// inMemory is a copy of files.
func inMemory(files fs.FS) (fs.FS, error) {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	if err := errors.Join(w.AddFS(files), w.Close()); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
}

// inTemporary calls do with a directory that is removed afterwards.
func inTemporary(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "slipway-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return do(dir)
}
