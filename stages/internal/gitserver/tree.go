package gitserver

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Tree is the content of a repository: regular files by slash-separated path.
type Tree map[string][]byte

// builder puts objects into a store and records their hashes in order.
type builder struct {
	store storer.EncodedObjectStorer
	made  []plumbing.Hash
}

// tree stores t with everything in it and returns the root's hash.
func (b *builder) tree(t Tree) (plumbing.Hash, error) {
	files, folders := map[string][]byte{}, map[string]Tree{}
	for p, content := range t {
		if !fs.ValidPath(p) || p == "." {
			return plumbing.ZeroHash, fmt.Errorf("%q is not a path inside a repository", p)
		}
		name, rest, below := strings.Cut(p, "/")
		switch {
		case !below:
			files[name] = content
		case folders[name] == nil:
			folders[name] = Tree{rest: content}
		default:
			folders[name][rest] = content
		}
	}
	var entries []object.TreeEntry
	for name, content := range files {
		if folders[name] != nil {
			return plumbing.ZeroHash, fmt.Errorf("%q is both a file and a folder", name)
		}
		h, err := b.put(plumbing.BlobObject, func(o plumbing.EncodedObject) error {
			w, err := o.Writer()
			if err != nil {
				return err
			}
			if _, err := w.Write(content); err != nil {
				return err
			}
			return w.Close()
		})
		if err != nil {
			return plumbing.ZeroHash, err
		}
		entries = append(entries, object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: h})
	}
	for name, sub := range folders {
		h, err := b.tree(sub)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		entries = append(entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: h})
	}
	sort.Sort(object.TreeEntrySorter(entries))
	return b.put(plumbing.TreeObject, (&object.Tree{Entries: entries}).Encode)
}

// commit stores a commit and returns its hash.
func (b *builder) commit(c *object.Commit) (plumbing.Hash, error) {
	return b.put(plumbing.CommitObject, c.Encode)
}

func (b *builder) put(kind plumbing.ObjectType, encode func(plumbing.EncodedObject) error) (plumbing.Hash, error) {
	o := b.store.NewEncodedObject()
	o.SetType(kind)
	if err := encode(o); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encode a git %s: %w", kind, err)
	}
	h, err := b.store.SetEncodedObject(o)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("store a git %s: %w", kind, err)
	}
	b.made = append(b.made, h)
	return h, nil
}
