package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// Epoch is the latest time that a layer says of a file, and the time at which
// an image says it was made: 2026-01-01T00:00:00Z.
const Epoch int64 = 1767225600

// Level is the level of compression of every layer. A change of it changes all
// digests.
const Level = zstd.SpeedDefault

// The files of a stored layer.
const (
	layerBlob = "layer.tar.zst"
	layerMeta = "layer.json"
)

// stored is a layer on disk: what partial.CompressedToLayer makes a v1.Layer of.
type stored struct {
	path      string
	mediaType types.MediaType
	meta      meta
}

type meta struct {
	Digest v1.Hash `json:"digest"` // of the bytes as they are stored
	DiffID v1.Hash `json:"diffID"` // of the tar stream
	Size   int64   `json:"size"`   // as stored, bytes
}

func (s stored) Digest() (v1.Hash, error)            { return s.meta.Digest, nil }
func (s stored) DiffID() (v1.Hash, error)            { return s.meta.DiffID, nil }
func (s stored) Size() (int64, error)                { return s.meta.Size, nil }
func (s stored) MediaType() (types.MediaType, error) { return s.mediaType, nil }
func (s stored) Compressed() (io.ReadCloser, error)  { return os.Open(s.path) }

// WriteLayer writes a layer of trees and files into the folder dir, which
// exists; OpenLayer reads it from there. Later trees and files replace earlier
// ones of the same name.
func WriteLayer(ctx context.Context, dir string, trees []Tree, files []File) (v1.Layer, error) {
	list, err := entries(trees, files)
	if err != nil {
		return nil, err
	}
	meta, err := compress(ctx, filepath.Join(dir, layerBlob), list)
	if err != nil {
		return nil, fmt.Errorf("write a layer: %w", err)
	}
	data, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write a layer: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, layerMeta), append(data, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("write a layer: %w", err)
	}
	return OpenLayer(dir)
}

func compress(ctx context.Context, path string, list []entry) (meta, error) {
	out, err := os.Create(path)
	if err != nil {
		return meta{}, err
	}
	defer func() { _ = out.Close() }()
	digest, diff := sha256.New(), sha256.New()
	encoder, err := zstd.NewWriter(io.MultiWriter(out, digest),
		zstd.WithEncoderLevel(Level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return meta{}, err
	}
	if err := writeTar(ctx, io.MultiWriter(encoder, diff), list); err != nil {
		return meta{}, err
	}
	if err := encoder.Close(); err != nil {
		return meta{}, err
	}
	info, err := out.Stat()
	if err != nil {
		return meta{}, err
	}
	return meta{Digest: hash(digest.Sum(nil)), DiffID: hash(diff.Sum(nil)), Size: info.Size()}, out.Close()
}

// OpenLayer reads the layer that WriteLayer left in dir.
func OpenLayer(dir string) (v1.Layer, error) {
	data, err := os.ReadFile(filepath.Join(dir, layerMeta))
	if err != nil {
		return nil, fmt.Errorf("open a layer: %w", err)
	}
	layer := stored{path: filepath.Join(dir, layerBlob), mediaType: types.OCILayerZStd}
	if err := json.Unmarshal(data, &layer.meta); err != nil {
		return nil, fmt.Errorf("open a layer: %s: %w", dir, err)
	}
	return partial.CompressedToLayer(layer)
}

// writeTar writes the entries as a PAX stream with whole seconds.
func writeTar(ctx context.Context, w io.Writer, list []entry) error {
	out := tar.NewWriter(w)
	for _, e := range list {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := writeEntry(out, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return out.Close()
}

func writeEntry(out *tar.Writer, e entry) error {
	h := &tar.Header{
		Name: e.name, Mode: mode(e.file.Mode), Uid: e.file.Owner.UID, Gid: e.file.Owner.GID,
		ModTime: time.Unix(Epoch, 0), Format: tar.FormatPAX,
	}
	if e.info != nil {
		h.ModTime = time.Unix(min(e.info.ModTime().Unix(), Epoch), 0)
	}
	for name, value := range e.xattrs {
		h.PAXRecords = map[string]string{"SCHILY.xattr." + name: value}
	}
	switch {
	case e.hard != "":
		h.Typeflag, h.Linkname, h.PAXRecords = tar.TypeLink, e.hard, nil
	case e.file.Dir:
		h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
	case e.file.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.file.Link, 0o777
	case e.file.Data != nil:
		h.Typeflag, h.Size = tar.TypeReg, int64(len(e.file.Data))
		return copyInto(out, h, bytes.NewReader(e.file.Data))
	case e.file.Source != "":
		return copyFile(out, h, e.file.Source)
	case e.info == nil:
		return errors.New("it is neither a file nor data, a link or a folder")
	case e.info.Mode()&fs.ModeNamedPipe != 0:
		h.Typeflag = tar.TypeFifo
	default:
		h.Typeflag = tar.TypeBlock
		if e.info.Mode()&fs.ModeCharDevice != 0 {
			h.Typeflag = tar.TypeChar
		}
		h.Devmajor, h.Devminor = int64(unix.Major(e.rdev)), int64(unix.Minor(e.rdev))
	}
	return out.WriteHeader(h)
}

func copyFile(out *tar.Writer, h *tar.Header, source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	return copyInto(out, h, f)
}

func copyInto(out *tar.Writer, h *tar.Header, r io.Reader) error {
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(out, r)
	return err
}

func mode(m fs.FileMode) int64 {
	n := int64(m.Perm())
	for bit, value := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			n |= value
		}
	}
	return n
}

func hash(sum []byte) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum)} }

// OpenPlain makes a layer of the tar file path. It is not compressed, because it
// never crosses a network.
func OpenPlain(path string) (v1.Layer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a layer: %w", err)
	}
	defer func() { _ = f.Close() }()
	digest, size, err := v1.SHA256(f)
	if err != nil {
		return nil, fmt.Errorf("open a layer: %w", err)
	}
	return partial.CompressedToLayer(stored{path, types.OCIUncompressedLayer, meta{Digest: digest, DiffID: digest, Size: size}})
}

// WritePlain makes a layer of trees and files, in the tar file path. Later ones
// replace earlier ones of the same name.
func WritePlain(ctx context.Context, path string, trees []Tree, files []File) (v1.Layer, error) {
	list, err := entries(trees, files)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("write a layer: %w", err)
	}
	if err := errors.Join(writeTar(ctx, out, list), out.Close()); err != nil {
		return nil, fmt.Errorf("write a layer: %w", err)
	}
	return OpenPlain(path)
}
