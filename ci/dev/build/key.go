package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Key names one build result: what it is, and the digest of all that went in.
type Key struct {
	Name   string // of the result, such as "dagger-engine"; a file name
	Digest string // lower-case hex sha256 over the inputs
}

// String is the name and the start of the digest, for messages.
func (k Key) String() string {
	if k.Digest == "" {
		return k.Name
	}
	return k.Name + "@" + k.Digest[:min(12, len(k.Digest))]
}

// Inputs collects what a build depends on. Each input is labelled and framed
// by its length, so that no two lists of inputs give the same bytes. The order
// of the calls matters. Not safe for concurrent use.
type Inputs struct {
	name string
	sum  [sha256.Size]byte
}

// NewInputs begins the inputs of the result called name.
func NewInputs(name string) *Inputs {
	return &Inputs{name: name, sum: sha256.Sum256([]byte("slipway build 1\n" + name))}
}

// String adds a labelled string.
func (in *Inputs) String(label, value string) *Inputs {
	h := sha256.New()
	h.Write(in.sum[:])
	fmt.Fprintf(h, "%d:%s=%d:%s", len(label), label, len(value), value)
	h.Sum(in.sum[:0])
	return in
}

// Strings adds a labelled list; ["a b"] and ["a", "b"] differ.
func (in *Inputs) Strings(label string, values []string) *Inputs {
	in.String(label, fmt.Sprint(len(values)))
	for _, v := range values {
		in.String(label, v)
	}
	return in
}

// File adds the content and the executable bit of the file at path, under
// label: where the file lies does not matter.
func (in *Inputs) File(label, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("digest input: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("digest input: %w", err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("digest input %s: %w", path, err)
	}
	in.String(label, fmt.Sprintf("%s executable=%t", hex.EncodeToString(h.Sum(nil)), info.Mode()&0o111 != 0))
	return nil
}

// Tree adds every file below dir for which include returns true, in lexical
// order, labelled by its slash path below dir. A nil include takes all. Folders
// whose name begins with a dot are left out.
func (in *Inputs) Tree(label, dir string, include func(path string) bool) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("digest inputs: %w", err)
		}
		if d.IsDir() {
			if path != dir && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return fmt.Errorf("digest inputs: %w", err)
		}
		rel = filepath.ToSlash(rel)
		if include != nil && !include(rel) {
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if err != nil {
				return fmt.Errorf("digest inputs: %w", err)
			}
			in.String(label+"/"+rel, "link "+target)
			return nil
		}
		return in.File(label+"/"+rel, path)
	})
}

// Key is the key of the inputs so far.
func (in *Inputs) Key() Key { return Key{Name: in.name, Digest: hex.EncodeToString(in.sum[:])} }
