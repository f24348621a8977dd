package publish

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type entry struct {
	path string // in the image, without leading slash
	from string // on this machine
	mode int64
}

// writeLayer writes a layer to file. Its bytes depend on the files' paths, modes
// and contents alone: owners are root, times are the epoch. Who unpacks it makes the directories.
func writeLayer(file string, entries []entry) (_ v1.Layer, err error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// The fastest level: programs hardly get smaller with a better one.
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(packed)
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.path, b.path) })
	for _, e := range entries {
		if err := addFile(archive, e); err != nil {
			return nil, fmt.Errorf("add %s: %w", e.path, err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
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
