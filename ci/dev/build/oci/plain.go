package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Plain is a layer that is not compressed, for it never crosses a network: a tar
// file. It is a v1.Layer.
type Plain struct {
	path   string
	digest v1.Hash
	size   int64
}

// OpenPlain makes a layer of the tar file path.
func OpenPlain(path string) (*Plain, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a layer: %w", err)
	}
	defer func() { _ = f.Close() }()
	digest, size, err := v1.SHA256(f)
	if err != nil {
		return nil, fmt.Errorf("open a layer: %w", err)
	}
	return &Plain{path: path, digest: digest, size: size}, nil
}

// WritePlain makes a layer of trees and files, in the tar file path. Later ones
// replace earlier ones of the same name.
func WritePlain(ctx context.Context, path string, trees []Tree, files []File) (*Plain, error) {
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

// Digest is that of the tar file.
func (l *Plain) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID is Digest: nothing is compressed.
func (l *Plain) DiffID() (v1.Hash, error) { return l.digest, nil }

// Size is that of the tar file.
func (l *Plain) Size() (int64, error) { return l.size, nil }

// MediaType is that of a layer without compression.
func (l *Plain) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// Compressed reads the tar file, as Uncompressed does.
func (l *Plain) Compressed() (io.ReadCloser, error) { return os.Open(l.path) }

// Uncompressed reads the tar file.
func (l *Plain) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
