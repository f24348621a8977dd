package oci

import (
	"context"
	"errors"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

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
