package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
)

// Values is what Versions need of a store; Store is one.
type Values interface {
	valueReader
	valueWriter
}

type valueReader interface {
	Get(ctx context.Context, key string) ([]byte, error)
	List(ctx context.Context, prefix string) ([]string, error)
}

type valueWriter interface {
	Put(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// Versions is a value that is stored once for each holder of the deployment's lock that writes it,
// under a key with the lock's generation. The highest version is the value. So an earlier holder
// never replaces the value of a later one, however late its write arrives. Versions above the
// holder's own generation were put there by somebody else; the holder's next write removes them.
type Versions struct {
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
func (v Versions) Key(generation int64) string {
	return fmt.Sprintf("%s%012d%s", v.Prefix, generation, v.Suffix)
}

// Of is the generation in the key of a version of v; ok is false for other keys.
func (v Versions) Of(key string) (generation int64, ok bool) {
	generation, ok = Generation(key)
	return generation, ok && key == v.Key(generation)
}

// maxReads is how often Newest starts over when versions are removed while it reads.
const maxReads = 20

// Newest is the value and its generation. Without one the error is fs.ErrNotExist.
func (v Versions) Newest(ctx context.Context, s valueReader) (data []byte, generation int64, err error) {
	for range maxReads {
		keys, err := s.List(ctx, v.Prefix)
		if err != nil {
			return nil, 0, err
		}
		generation := int64(-1)
		for _, key := range keys {
			if g, is := v.Of(key); is {
				generation = max(generation, g)
			}
		}
		if generation < 0 {
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
func (v Versions) Put(ctx context.Context, s Values, generation int64, data []byte) error {
	if err := s.Put(ctx, v.Key(generation), data); err != nil {
		return err
	}
	return v.remove(ctx, s, generation, generation, v.Kept)
}

// Remove removes the versions up to a generation; higher ones stay, but for those that Put
// removes.
func (v Versions) Remove(ctx context.Context, s Values, generation int64) error {
	return v.remove(ctx, s, generation+1, generation, 0)
}

// remove removes the versions below one generation, but for the last ones of them, and through a
// fenced store those above another.
func (v Versions) remove(ctx context.Context, s Values, low, high int64, kept int) error {
	keys, err := s.List(ctx, v.Prefix)
	if err != nil {
		return err
	}
	var below, above []int64
	for _, key := range keys {
		switch g, is := v.Of(key); {
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
