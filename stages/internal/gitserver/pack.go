package gitserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// The most that Slipway reads of a branch, which others may push to: zeros pack well, and a
// tree may contain another one many times.
const (
	mostBytes = 256 << 20 // packed, and unpacked
	mostItems = 100_000   // objects, and files
)

// errTooLarge: a branch has more than that.
var errTooLarge = fmt.Errorf("it has more than %d MiB or %d files", mostBytes>>20, mostItems)

// unpack reads a pack of objects into store, unless it is too large.
func unpack(store *memory.Storage, r io.Reader) error {
	pack, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return err
	}
	if len(pack) > mostBytes {
		return errTooLarge
	}
	if err := measure(pack); err != nil {
		return err
	}
	return packfile.UpdateObjectStorage(store, bytes.NewReader(pack))
}

// measure returns errTooLarge if a pack has too much in it. It keeps nothing of that.
func measure(pack []byte) error {
	s := packfile.NewScanner(bytes.NewReader(pack))
	_, n, err := s.Header()
	if err != nil {
		return err
	}
	if n > mostItems {
		return errTooLarge
	}
	left := uint64(mostBytes)
	take := func(size uint64) bool {
		if size > left {
			return false
		}
		left -= size
		return true
	}
	for range n {
		o, err := s.NextObjectHeader()
		if err != nil {
			return err
		}
		if o.Length < 0 || !take(uint64(o.Length)) {
			return errTooLarge
		}
		begin := beginning{}
		if _, _, err := s.NextObject(&begin); err != nil {
			return err
		}
		if !o.Type.IsDelta() {
			continue
		}
		_, base := binary.Uvarint(begin.bytes) // a delta begins with the sizes of what it changes and makes
		size, is := binary.Uvarint(begin.bytes[max(base, 0):])
		switch {
		case base <= 0 || is <= 0:
			return errors.New("a delta says no size")
		case !take(size):
			return errTooLarge
		}
	}
	return nil
}

// beginning keeps the first bytes that are written to it.
type beginning struct{ bytes []byte }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p[:min(len(p), 2*binary.MaxVarintLen64-len(b.bytes))]...)
	return len(p), nil
}
