package acquire

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// observeEvery is how many bytes pass between two reports of progress.
const observeEvery = 1 << 20

// write writes the archive of an image to the path of file, and completes file by size and
// sum. The image is called ref in it.
func (a *adder) write(ctx context.Context, f *found, file bundle.File, ref string, observe func(int64)) (_ bundle.File, err error) {
	dir := a.bundle.Path(bundle.AddedDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return file, unwritable(err)
	}
	tmp, err := os.CreateTemp(dir, atomicfile.Unfinished+"*")
	if err != nil {
		return file, unwritable(err)
	}
	defer func() {
		if err != nil {
			_ = tmp.Close() // it may be closed
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	sum := sha256.New()
	w := &archiveWriter{tar: tar.NewWriter(io.MultiWriter(tmp, sum)), observe: observe}
	if err := w.image(ctx, f, ref); err != nil {
		return file, err
	}
	if file.Size, err = tmp.Seek(0, io.SeekCurrent); err != nil {
		return file, err
	}
	file.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := errors.Join(tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return file, unwritable(err)
	}
	if err := os.Rename(tmp.Name(), a.bundle.Path(file.Path)); err != nil {
		return file, unwritable(err)
	}
	if err := atomicfile.SyncDir(dir); err != nil { // before an index names it
		return file, unwritable(err)
	}
	return file, nil
}

func unwritable(err error) error { return fmt.Errorf("%w: %w", errWrite, err) }

type archiveWriter struct {
	tar     *tar.Writer
	observe func(int64)
	done    int64
}

// image writes one image. The bytes depend on the image and its name alone.
func (w *archiveWriter) image(ctx context.Context, f *found, ref string) error {
	if err := w.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	manifest, err := f.image.RawManifest()
	if err != nil {
		return err
	}
	if err := w.file(ociarchive.BlobPath(f.manifest), manifest); err != nil {
		return err
	}
	if f.text != nil {
		if err := w.file(ociarchive.BlobPath(f.top.Digest), f.text); err != nil {
			return err
		}
	}
	for _, d := range f.parts {
		if err := w.blob(ctx, f.image, d); err != nil {
			return err
		}
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{
		MediaType: f.top.MediaType, Digest: f.top.Digest, Size: f.top.Size, Annotations: map[string]string{ociarchive.AnnotationName: ref},
	}}}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return errors.Join(w.file(ociarchive.IndexFile, text), w.tar.Close())
}

func (w *archiveWriter) header(name string, size int64) error {
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
}

func (w *archiveWriter) file(name string, text []byte) error {
	if err := w.header(name, int64(len(text))); err != nil {
		return err
	}
	_, err := w.tar.Write(text)
	return err
}

// blob copies a blob and compares it with its descriptor.
func (w *archiveWriter) blob(ctx context.Context, image v1.Image, d v1.Descriptor) error {
	layer, err := image.LayerByDigest(d.Digest)
	if err != nil {
		return err
	}
	r, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	if err := w.header(ociarchive.BlobPath(d.Digest), d.Size); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum, w), io.LimitReader(bounded.Until(ctx, r), d.Size))
	if err != nil {
		return err
	}
	if n != d.Size {
		return damaged(d, fmt.Errorf("it has %d bytes in place of %d", n, d.Size))
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.Digest.Hex {
		return damaged(d, fmt.Errorf("its digest is sha256:%s", got))
	}
	return nil
}

// Write counts what passes.
func (w *archiveWriter) Write(p []byte) (int, error) {
	before := w.done
	w.done += int64(len(p))
	if before/observeEvery != w.done/observeEvery {
		w.observe(w.done)
	}
	return len(p), nil
}

func (a *adder) writeIndex(index bundle.Index) error {
	text, err := index.Marshal()
	if err != nil {
		return err
	}
	fresh, err := bundle.Parse(text)
	if err != nil {
		return err
	}
	a.Keep(a.index, fresh.ReadDigest())
	if err := atomicfile.Write(a.bundle.Path(bundle.IndexFile), text, 0o644); err != nil {
		return unwritable(err)
	}
	a.bundle.Index, a.index = index, fresh.ReadDigest()
	return nil
}
