package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/slipway-sh/slipway/ci/dev/build/debian"
)

// layout writes one image as an OCI layout: a folder of blobs and an index.
// Layers are not compressed, for they never cross a network.
type layout struct {
	dir    string
	layers []descriptor
}

type descriptor struct {
	MediaType string            `json:"mediaType"`
	Digest    string            `json:"digest"`
	Size      int64             `json:"size"`
	Platform  map[string]string `json:"platform,omitempty"`
}

// ociConfig is how containers of the image run.
type ociConfig struct {
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
}

const mediaTypes = "application/vnd.oci.image."

func newLayout(dir string) (*layout, error) {
	if err := os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o755); err != nil {
		return nil, fmt.Errorf("begin an image: %w", err)
	}
	return &layout{dir: dir}, nil
}

// blob stores what write writes and gives its descriptor.
func (l *layout) blob(mediaType string, write func(w io.Writer) error) (descriptor, error) {
	f, err := os.CreateTemp(l.dir, "blob-")
	if err != nil {
		return descriptor{}, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails once it is renamed, as it should
	defer func() { _ = f.Close() }()
	sum := &digester{h: sha256.New()}
	if err := write(io.MultiWriter(f, sum)); err != nil {
		return descriptor{}, err
	}
	if err := f.Chmod(0o644); err != nil {
		return descriptor{}, err
	}
	if err := f.Close(); err != nil {
		return descriptor{}, err
	}
	name := hex.EncodeToString(sum.h.Sum(nil))
	if err := os.Rename(f.Name(), filepath.Join(l.dir, "blobs/sha256", name)); err != nil {
		return descriptor{}, err
	}
	return descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: sum.n}, nil
}

type digester struct {
	h hash.Hash
	n int64
}

func (d *digester) Write(b []byte) (int, error) {
	d.n += int64(len(b))
	return d.h.Write(b)
}

// addTar makes a tar file the next layer.
func (l *layout) addTar(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d, err := l.blob(mediaTypes+"layer.v1.tar", func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
	if err != nil {
		return fmt.Errorf("add the layer %s: %w", path, err)
	}
	l.layers = append(l.layers, d)
	return nil
}

// addLayer makes what fill writes the next layer.
func (l *layout) addLayer(fill func(w *layerWriter) error) error {
	d, err := l.blob(mediaTypes+"layer.v1.tar", func(w io.Writer) error {
		lw := &layerWriter{tar.NewWriter(w)}
		if err := fill(lw); err != nil {
			return err
		}
		return lw.tar.Close()
	})
	if err != nil {
		return err
	}
	l.layers = append(l.layers, d)
	return nil
}

// finish writes config, manifest and index, and gives the manifest's digest.
func (l *layout) finish(config ociConfig) (string, error) {
	var diffs []string
	for _, d := range l.layers {
		diffs = append(diffs, d.Digest) // the same, for nothing is compressed
	}
	c, err := l.json(mediaTypes+"config.v1+json", map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"created":      time.Unix(debian.Epoch, 0).UTC(),
		"config":       config,
		"rootfs":       map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		return "", err
	}
	m, err := l.json(mediaTypes+"manifest.v1+json", map[string]any{
		"schemaVersion": 2,
		"mediaType":     mediaTypes + "manifest.v1+json",
		"config":        c,
		"layers":        l.layers,
	})
	if err != nil {
		return "", err
	}
	m.Platform = map[string]string{"architecture": runtime.GOARCH, "os": "linux"}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": mediaTypes + "index.v1+json", "manifests": []descriptor{m}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(l.dir, "index.json"), index, 0o644); err != nil {
		return "", err
	}
	return m.Digest, os.WriteFile(filepath.Join(l.dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

func (l *layout) json(mediaType string, value any) (descriptor, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(mediaType, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// layerWriter writes entries that depend on nothing but name, mode and content.
type layerWriter struct{ tar *tar.Writer }

func (w *layerWriter) header(h tar.Header) error {
	h.ModTime = time.Unix(debian.Epoch, 0)
	h.Format = tar.FormatPAX
	return w.tar.WriteHeader(&h)
}

func (w *layerWriter) dir(name string, mode int64) error {
	return w.header(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

// whiteout takes a file of a lower layer away.
func (w *layerWriter) whiteout(name string) error {
	dir, base := filepath.Split(name)
	return w.header(tar.Header{Typeflag: tar.TypeReg, Name: dir + ".wh." + base, Mode: 0o644})
}

// file adds the file at path, readable by all and executable if it is.
func (w *layerWriter) file(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := w.header(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w.tar, f)
	return err
}

// tree adds what is below dir, in lexical order, where include returns true for
// the slash path below dir.
func (w *layerWriter) tree(ctx context.Context, name, dir string, include func(path string) bool) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		to := name + "/" + rel
		switch {
		case rel == ".":
			return w.dir(name, 0o755)
		case !include(rel):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return w.dir(to, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return w.header(tar.Header{Typeflag: tar.TypeSymlink, Name: to, Linkname: target, Mode: 0o777})
		case d.Type().IsRegular():
			return w.file(to, path)
		}
		return nil
	})
}
