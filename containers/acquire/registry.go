package acquire

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-sh/slipway/imageref"
)

type repository struct {
	ref     name.Reference
	options []remote.Option
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
	return &repository{ref, []remote.Option{remote.WithAuthFromKeychain(a.Keychain), remote.WithTransport(a.guard)}}, nil
}

func (r *repository) get(ctx context.Context, ref name.Reference) (*remote.Descriptor, error) {
	return remote.Get(ref, append(r.options, remote.WithContext(ctx))...)
}

func (r *repository) root(ctx context.Context, _ wanted) (v1.Descriptor, error) {
	got, err := r.get(ctx, r.ref)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return got.Descriptor, nil
}

func (r *repository) index(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	got, err := r.get(ctx, r.ref.Context().Digest(d.Digest.String()))
	if err != nil {
		return nil, err
	}
	return got.Manifest, nil
}

func (r *repository) image(ctx context.Context, d v1.Descriptor) (v1.Image, error) {
	got, err := r.get(ctx, r.ref.Context().Digest(d.Digest.String()))
	if err != nil {
		return nil, err
	}
	return got.Image()
}
