package publish

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file of a layer.
type entry struct {
	path string // in the image, without leading slash
	from string // on this machine
	mode int64
}

// layer is a layer whose compressed bytes are in a file.
type layer struct {
	file           string
	digest, diffID v1.Hash
	size           int64
}

// writeLayer writes a layer to file. Its bytes depend on the files' paths, modes
// and contents alone: owners are root, times are the epoch.
func writeLayer(file string, entries []entry) (_ *layer, err error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	compressed, plain := counted{hash: sha256.New()}, sha256.New()
	// The fastest level: programs hardly get smaller with a better one.
	packed, err := gzip.NewWriterLevel(io.MultiWriter(out, &compressed), gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(io.MultiWriter(packed, plain))
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.path, b.path) })
	made := map[string]bool{".": true}
	for _, e := range entries {
		if err := addParents(archive, path.Dir(e.path), made); err != nil {
			return nil, err
		}
		if err := addFile(archive, e); err != nil {
			return nil, fmt.Errorf("add %s: %w", e.path, err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return nil, err
	}
	return &layer{file: file, digest: sum(compressed.hash), diffID: sum(plain), size: compressed.size}, nil
}

func addParents(out *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := addParents(out, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
}

func addFile(out *tar.Writer, e entry) error {
	in, err := os.Open(e.from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.path, Mode: e.mode, Size: info.Size(), ModTime: time.Unix(0, 0)}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

type counted struct {
	hash hash.Hash
	size int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	return c.hash.Write(b)
}

func sum(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return os.Open(l.file) }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(l.file)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}
