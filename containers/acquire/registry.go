package acquire

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-sh/slipway/imageref"
)

// pull finds what a reference names in its own registry, whatever it is added as.
func (a *adder) pull(ctx context.Context, from imageref.Reference) (*top, error) {
	var options []name.Option
	if a.PlainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(from.String(), options...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReference, err)
	}
	get := func(ref name.Reference) (*remote.Descriptor, error) {
		return remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(a.Keychain), remote.WithTransport(a.guard))
	}
	got, err := get(ref)
	if err != nil {
		return nil, err
	}
	return &top{Descriptor: got.Descriptor, text: got.Manifest, image: func(d v1.Descriptor) (v1.Image, error) {
		if d.Digest == got.Digest {
			return got.Image()
		}
		one, err := get(ref.Context().Digest(d.Digest.String()))
		if err != nil {
			return nil, err
		}
		return one.Image()
	}}, nil
}
