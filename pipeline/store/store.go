// Package store stores a deployment's state as values under keys, in a directory or in
// a bucket of S3, Azure or Google Cloud, all through one interface. Values are written
// atomically, even if the writer is killed. Seal makes records that detect damage, and
// Versions are values that a late writer does not replace.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/slipway-sh/slipway/bounded"
)

// MaxBytes is the largest value that is written or read.
const MaxBytes = bounded.Generated

// operationLimit is how long one operation may take.
const operationLimit = 30 * time.Second

// ErrExists means that a value that was to be created exists already.
var ErrExists = errors.New("it exists already")

// errSlow is the cause of an operation's context once operationLimit has passed.
var errSlow = errors.New("no answer in time")

// Store is a set of values, each under a key such as "latest/000000000007". It is
// safe for concurrent use, and by any number of processes at the same time.
//
// Every error is a fault with a code, except for fs.ErrNotExist and ErrExists where a
// method documents them, the cause of a context that has ended, and errors about an
// invalid key or value. No error contains a credential.
type Store struct {
	b        backend
	prefix   string // of all keys: empty, or it ends with a slash
	location string // for messages: the URL, without its query
	local    bool
	limit    time.Duration
	check    func(context.Context) error // before each write; nil: none
}

// backend stores the values. Keys passed to it are complete and valid.
type backend interface {
	reader
	writer
}

type reader interface {
	// get fails with fs.ErrNotExist if there is no value.
	get(ctx context.Context, key string) ([]byte, error)
	// list returns the keys that begin with prefix, in any order, without
	// unfinished values.
	list(ctx context.Context, prefix string) ([]string, error)
}

type writer interface {
	// put creates or replaces the value; with ifAbsent it fails with ErrExists if
	// there is one. Both are atomic.
	put(ctx context.Context, key string, data []byte, ifAbsent bool) error
	// remove does nothing if there is no value.
	remove(ctx context.Context, key string) error
}

// Location returns the store's URL without parameters.
func (s *Store) Location() string { return s.location }

// Sub returns the part of the store whose keys begin with prefix followed by a slash.
func (s *Store) Sub(prefix string) (*Store, error) {
	if err := checkKey(prefix); err != nil {
		return nil, err
	}
	sub := *s
	sub.prefix += prefix + "/"
	sub.location += "/" + prefix
	return &sub, nil
}

// Fenced returns the store for a writer that can lose the right to write. check is called
// before each Put, Create and Delete; if it fails, nothing is written, and its error is
// wrapped.
func (s *Store) Fenced(check func(context.Context) error) *Store {
	fenced := *s
	fenced.check = check
	return &fenced
}

// IsFenced reports whether each write is checked, see Fenced.
func (s *Store) IsFenced() bool { return s.check != nil }

// Get returns a value. The error is fs.ErrNotExist if there is none.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	var data []byte
	err := s.do(ctx, "read", key, func(ctx context.Context) (err error) {
		data, err = s.b.get(ctx, s.prefix+key)
		return err
	})
	return data, err
}

// Put creates or replaces a value. Once it returns nil, the value survives a crash of
// the machine; if it fails or does not return, the store holds the old value or the new
// one.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := checkSize(key, data); err != nil {
		return err
	}
	return s.write(ctx, "write", key, func(ctx context.Context) error { return s.b.put(ctx, s.prefix+key, data, false) })
}

// Create creates a value that does not exist yet; of several callers one succeeds and
// the others get ErrExists. A caller whose request is retried after a lost reply may
// find its own value, so values should identify their writer.
func (s *Store) Create(ctx context.Context, key string, data []byte) error {
	if err := checkSize(key, data); err != nil {
		return err
	}
	return s.write(ctx, "create", key, func(ctx context.Context) error { return s.b.put(ctx, s.prefix+key, data, true) })
}

// Delete removes a value if it exists.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.write(ctx, "delete", key, func(ctx context.Context) error { return s.b.remove(ctx, s.prefix+key) })
}

// List returns the keys that begin with prefix, sorted. An empty prefix matches all.
// Files and objects whose names are not valid keys are left out.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	err := s.do(ctx, "list", prefix+"x", func(ctx context.Context) error {
		all, err := s.b.list(ctx, s.prefix+prefix)
		for _, key := range all {
			if key = key[len(s.prefix):]; checkKey(key) == nil {
				keys = append(keys, key)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	return keys, nil
}

// Check returns a fault of class Preflight if the store cannot be reached and read. It
// changes nothing.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.List(ctx, "check/none")
	return Preflight(err)
}

// Close closes connections. No part of the store may be used afterwards.
func (s *Store) Close() error {
	c, ok := s.b.(io.Closer)
	if !ok {
		return nil
	}
	if err := c.Close(); err != nil {
		return s.fail("close "+s.location, err)
	}
	return nil
}

// write is do for an operation that changes something.
func (s *Store) write(ctx context.Context, verb, key string, f func(context.Context) error) error {
	if s.check != nil {
		if err := s.check(ctx); err != nil {
			return fmt.Errorf("%s %s in %s: %w", verb, key, s.location, err)
		}
	}
	return s.do(ctx, verb, key, f)
}

// do runs one operation with a time limit and converts its error for the caller.
func (s *Store) do(ctx context.Context, verb, key string, f func(context.Context) error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	op := fmt.Sprintf("%s %s in %s", verb, key, s.location)
	if verb == "list" {
		op = "list " + s.location
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	inner, cancel := context.WithTimeoutCause(ctx, s.limit, errSlow)
	defer cancel()
	err := f(inner)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", op, fs.ErrNotExist)
	case errors.Is(err, ErrExists):
		return fmt.Errorf("%s: %w", op, ErrExists)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	case errors.Is(context.Cause(inner), errSlow):
		err = fmt.Errorf("%w (%s): %w", errSlow, s.limit, err)
	}
	return s.fail(op, err)
}
