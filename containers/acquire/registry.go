package acquire

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-sh/slipway/imageref"
)

// repository is one of a registry.
type repository struct {
	name    name.Repository
	ref     name.Reference
	options []remote.Option
	top     *remote.Descriptor // what root found
}

// registry is the origin of what a reference names in its own registry, whatever it is
// added as.
func (a *adder) registry(from imageref.Reference) (origin, error) {
	var options []name.Option
	if a.PlainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(from.String(), options...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReference, err)
	}
	return &repository{ref: ref, name: ref.Context(), options: []remote.Option{
		remote.WithAuthFromKeychain(a.Keychain), remote.WithTransport(a.guard),
	}}, nil
}

func (r *repository) root(ctx context.Context, _ wanted) (v1.Descriptor, error) {
	var err error
	if r.top, err = remote.Get(r.ref, append(r.options, remote.WithContext(ctx))...); err != nil {
		return v1.Descriptor{}, err
	}
	return r.top.Descriptor, nil
}

func (r *repository) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	if r.top != nil && r.top.Digest == d.Digest {
		return io.NopCloser(bytes.NewReader(r.top.Manifest)), nil
	}
	ref, options := r.name.Digest(d.Digest.String()), append(r.options, remote.WithContext(ctx))
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		got, err := remote.Get(ref, options...)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(got.Manifest)), nil
	}
	layer, err := remote.Layer(ref, options...)
	if err != nil {
		return nil, err
	}
	return layer.Compressed()
}

// Close has nothing to close.
func (r *repository) Close() error { return nil }
