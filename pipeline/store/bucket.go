package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/slipway-sh/slipway/bounded"
)

// How often, and after what delay, a write is retried while somebody else writes the
// same object.
const (
	busyTries = 6
	busyPause = 50 * time.Millisecond
)

// bucket is a backend based on gocloud.dev/blob.
type bucket struct {
	b    *blob.Bucket
	kind func(error) Kind
}

// Close closes the bucket.
func (b *bucket) Close() error { return b.b.Close() }

// classed wraps err with its kind. gocloud.dev/blob's own "not found" is not used, as
// it also covers missing buckets, unknown hosts and refused access.
func (b *bucket) classed(err error) error {
	if err == nil {
		return nil
	}
	switch k := b.kind(err); k {
	case Absent:
		return fs.ErrNotExist
	case Exists:
		return ErrExists
	default:
		return &kindError{k, err}
	}
}

func (b *bucket) get(ctx context.Context, key string) (data []byte, err error) {
	r, err := b.b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, b.classed(err)
	}
	defer func() { err = errors.Join(err, b.classed(r.Close())) }()
	data, err = bounded.Read(r, MaxBytes)
	switch {
	case errors.Is(err, bounded.ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, b.classed(err)
	case int64(len(data)) != r.Size():
		return nil, fmt.Errorf("%d of %d bytes were received", len(data), r.Size())
	}
	return data, nil
}

func (b *bucket) put(ctx context.Context, key string, data []byte, ifAbsent bool) error {
	opts := &blob.WriterOptions{
		ContentType: "application/octet-stream", DisableContentTypeDetection: true,
		IfNotExist: ifAbsent,
		// A single request, so that the server checks the condition atomically.
		BufferSize: max(len(data)+1, 8<<20),
	}
	pause := busyPause
	for try := 1; ; try++ {
		err := b.b.WriteAll(ctx, key, data, opts)
		if err == nil || b.kind(err) != Busy || try == busyTries {
			return b.classed(err)
		}
		select {
		case <-ctx.Done():
			return b.classed(err)
		case <-time.After(pause):
			pause *= 2
		}
	}
}

func (b *bucket) remove(ctx context.Context, key string) error {
	err := b.classed(b.b.Delete(ctx, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (b *bucket) list(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	for it := b.b.List(&blob.ListOptions{Prefix: prefix}); ; {
		obj, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, b.classed(err)
		}
		keys = append(keys, obj.Key)
	}
}

// memKind classifies an error of a bucket in memory.
func memKind(err error) Kind {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return Absent
	case gcerrors.FailedPrecondition:
		return Exists
	}
	return Other
}
