package conductor

import (
	"context"
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

func (o *Options) loadRelease(files fs.FS) (err error) {
	if o.Release, err = platform.Load(files); err != nil {
		return err
	}
	o.ReleaseDigest, err = platform.Digest(files)
	return err
}

// inTemporary calls do with a directory that is removed afterwards.
func inTemporary(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "slipway-platform-")
	if err != nil {
		return fmt.Errorf("make a directory for the platform release: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return do(dir)
}
