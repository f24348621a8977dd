package backup

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Pack stores a directory as an archive below a key. The same files make the same archive.
func (r *Repository) Pack(ctx context.Context, key string, files fs.FS) (contract.Blob, error) {
	to := r.Writer(ctx, key)
	archive := zip.NewWriter(to)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return pack(archive, files, name)
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return contract.Blob{}, fmt.Errorf("store the platform release: %w", err)
	}
	return to.Close()
}

func pack(archive *zip.Writer, files fs.FS, name string) error {
	info, err := fs.Stat(files, name)
	if err != nil {
		return err
	}
	// What platform.Digest does not tell apart is the same archive: neither other permissions
	// nor what compresses it make a difference.
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	header := &zip.FileHeader{Name: name, Method: zip.Store}
	header.SetMode(mode)
	to, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	from, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	_, err = io.Copy(to, from)
	return err
}

// Archive is an archive that Pack has stored.
func (r *Repository) Archive(ctx context.Context, key string, b contract.Blob) ([]byte, error) {
	return bounded.Read(r.Reader(ctx, key, b), bounded.Packed)
}

// Release is the platform release in an archive.
func Release(archive []byte) (*platform.Release, error) {
	files, err := bounded.Unpack(archive)
	if err != nil {
		return nil, fmt.Errorf("unpack the platform release: %w", err)
	}
	return platform.Load(files)
}

// Copy stores a blob below another key.
func (r *Repository) Copy(ctx context.Context, from string, b contract.Blob, to string) (contract.Blob, error) {
	w := r.Writer(ctx, to)
	if _, err := io.Copy(w, r.Reader(ctx, from, b)); err != nil {
		return contract.Blob{}, err
	}
	return w.Close()
}
