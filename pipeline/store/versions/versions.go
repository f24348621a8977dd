// Package versions stores a value once for each holder of a deployment's lock that writes it,
// under a key with the lock's generation. The highest is the value. So a write of an earlier
// holder never replaces that of a later one, however late it arrives. What is above the holder's
// own generation was put there by somebody else, and goes with the holder's next write.
package versions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
)

// Store is what a value needs of a store; store.Store is one.
type Store interface {
	Reader
	writer
}

// Reader is what reading a value needs of a store.
type Reader interface {
	Get(ctx context.Context, key string) ([]byte, error)
	List(ctx context.Context, prefix string) ([]string, error)
}

type writer interface {
	Put(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// Value is a value with versions.
type Value struct {
	Prefix string // of the keys of its versions: "state/"
	Suffix string // ".yaml"
	Kept   int    // how many versions below the last one Put leaves
}

var versionRE = regexp.MustCompile(`(?:^|/)(\d{12})(?:\.[a-z]+)?$`)

// Generation is the generation in the key of a version, of whatever value; ok is false for
// other keys.
func Generation(key string) (generation int64, ok bool) {
	m := versionRE.FindStringSubmatch(key)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

// Key is the key of the version of a generation, which is 0 for a writer without the lock.
func (v Value) Key(generation int64) string {
	return fmt.Sprintf("%s%012d%s", v.Prefix, generation, v.Suffix)
}

// is reports whether a key is that of a version.
func (v Value) is(key string) (generation int64, ok bool) {
	generation, ok = Generation(key)
	return generation, ok && key == v.Key(generation)
}

// Among is the highest generation of the value's versions among keys; ok is false if there is
// none.
func (v Value) Among(keys []string) (generation int64, ok bool) {
	for _, key := range keys {
		if g, is := v.is(key); is {
			generation, ok = max(generation, g), true
		}
	}
	return generation, ok
}

// maxReads is how often Newest starts over when versions are removed while it reads.
const maxReads = 20

// Newest is the value and its generation. Without one the error is fs.ErrNotExist.
func (v Value) Newest(ctx context.Context, s Reader) (data []byte, generation int64, err error) {
	for range maxReads {
		keys, err := s.List(ctx, v.Prefix)
		if err != nil {
			return nil, 0, err
		}
		generation, ok := v.Among(keys)
		if !ok {
			return nil, 0, fs.ErrNotExist
		}
		data, err := s.Get(ctx, v.Key(generation))
		switch {
		case err == nil:
			return data, generation, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, 0, err
		}
	}
	return nil, 0, fmt.Errorf("the versions of %s… are listed and cannot be read", v.Prefix)
}

// Put writes the version of a generation and removes those below it that are not to be kept. Through
// a fenced store it also removes those above it, which would hide what was written now.
func (v Value) Put(ctx context.Context, s Store, generation int64, data []byte) error {
	if err := s.Put(ctx, v.Key(generation), data); err != nil {
		return err
	}
	return v.remove(ctx, s, generation, generation, v.Kept)
}

// Remove removes the versions up to a generation; higher ones stay, but for those that Put
// removes.
func (v Value) Remove(ctx context.Context, s Store, generation int64) error {
	return v.remove(ctx, s, generation+1, generation, 0)
}

// remove removes the versions below one generation, but for the last ones of them, and through a
// fenced store those above another.
func (v Value) remove(ctx context.Context, s Store, low, high int64, kept int) error {
	keys, err := s.List(ctx, v.Prefix)
	if err != nil {
		return err
	}
	var below, above []int64
	for _, key := range keys {
		switch g, is := v.is(key); {
		case is && g < low:
			below = append(below, g)
		case is && g > high:
			above = append(above, g)
		}
	}
	slices.Sort(below)
	gone := below[:max(len(below)-kept, 0)]
	// A fenced store looks at the lock before it deletes, and so after the list above: what a later
	// holder has written by then makes it fail. What it deletes nobody with the lock has written.
	if f, ok := s.(interface{ IsFenced() bool }); ok && f.IsFenced() {
		gone = append(gone, above...)
	}
	for _, g := range gone {
		if err := s.Delete(ctx, v.Key(g)); err != nil {
			return err
		}
	}
	return nil
}
