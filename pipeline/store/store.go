// Package store keeps a deployment's state as values under keys, in a directory
// or in a bucket of S3, Azure or Google Cloud, all through one interface. A value
// is there completely or not at all, whatever is killed while it is written.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// MaxBytes is the largest value that is written or read.
const MaxBytes = 64 << 20

// answerLimit is how long one operation may take.
const answerLimit = 30 * time.Second

// ErrExists says that there is a value already where one was to be created.
var ErrExists = errors.New("it exists already")

// errSlow is the cause of an operation's context when answerLimit passed.
var errSlow = errors.New("no answer in time")

// Store is a set of values, each under a key such as "journal/a.b.json". It is
// safe for concurrent use, and by any number of processes at the same time.
//
// Every error is a fault with a code, except where a method says fs.ErrNotExist
// or ErrExists, the cause of a context that has ended, and a key or value that no
// store takes. No error holds a credential.
type Store struct {
	b        backend
	prefix   string // of all keys: empty, or it ends with a slash
	location string // for messages: the URL, without its query
	local    bool
	limit    time.Duration
}

// backend is where values are. Its keys are complete and valid.
type backend interface {
	reader
	writer
}

type reader interface {
	// get fails with fs.ErrNotExist when there is no value.
	get(ctx context.Context, key string) ([]byte, error)
	// list gives the keys that begin with prefix, in any order, and nothing
	// that a writer has not finished.
	list(ctx context.Context, prefix string) ([]string, error)
}

type writer interface {
	// put replaces the value, or with ifAbsent fails with ErrExists when there
	// is one. Both are atomic.
	put(ctx context.Context, key string, data []byte, ifAbsent bool) error
	// remove does nothing when there is no value.
	remove(ctx context.Context, key string) error
}

// Location is the store's URL without parameters.
func (s *Store) Location() string { return s.location }

// Local tells whether the store never leaves this machine: a directory, or memory.
func (s *Store) Local() bool { return s.local }

// Sub is the part of the store whose keys begin with prefix and a slash.
func (s *Store) Sub(prefix string) (*Store, error) {
	if err := checkKey(prefix); err != nil {
		return nil, err
	}
	sub := *s
	sub.prefix += prefix + "/"
	sub.location += "/" + prefix
	return &sub, nil
}

// Get returns a value. Without one the error is fs.ErrNotExist.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	var data []byte
	err := s.do(ctx, "read", key, func(ctx context.Context) (err error) {
		data, err = s.b.get(ctx, s.prefix+key)
		return err
	})
	return data, err
}

// Put replaces a value or makes it. When it returns nil, the value survives a
// crash of the machine; when it fails or does not return, there is the old value
// or the new one.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := checkSize(key, data); err != nil {
		return err
	}
	return s.do(ctx, "write", key, func(ctx context.Context) error { return s.b.put(ctx, s.prefix+key, data, false) })
}

// Create makes a value that is not there yet; of several callers one succeeds,
// and the others get ErrExists. A caller whose first request was answered by
// nobody may find what it made itself: values should tell who made them.
func (s *Store) Create(ctx context.Context, key string, data []byte) error {
	if err := checkSize(key, data); err != nil {
		return err
	}
	return s.do(ctx, "create", key, func(ctx context.Context) error { return s.b.put(ctx, s.prefix+key, data, true) })
}

// Delete removes a value; there need not be one.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.do(ctx, "delete", key, func(ctx context.Context) error { return s.b.remove(ctx, s.prefix+key) })
}

// List gives the keys that begin with prefix, sorted. An empty prefix is that of
// all. Files and objects with names that are no keys are left out.
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

// Check tells whether the store can be reached and read, as a preflight does. It
// changes nothing.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.List(ctx, "check/none")
	return Preflight(err)
}

// Close lets go of connections. No part of the store may be used afterwards.
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

// do runs one operation with its time limit and turns its error into the one
// that the caller gets.
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
