package gitserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Comparison is what a push of a tree would change.
type Comparison struct {
	Revision                string   // commit that the branch is at; empty: there is no such branch
	Added, Changed, Removed []string // files, by their paths
}

// Compare tells what Push would change, and changes nothing.
func (s *Server) Compare(ctx context.Context, repository, branch string, t Tree) (Comparison, error) {
	var out Comparison
	b := &builder{store: memory.NewStorage()}
	root, err := b.tree(t)
	if err != nil {
		return out, err
	}
	_, head, err := s.head(ctx, repository, branch)
	if err != nil {
		return out, err
	}
	has := map[string]plumbing.Hash{}
	if head != nil {
		out.Revision = head.Hash.String()
		tree, err := head.Tree()
		if err != nil {
			return out, fmt.Errorf("read the commit %s of %s: %w", head.Hash, repository, err)
		}
		if has, err = filesOf(tree); err != nil {
			return out, fmt.Errorf("read the commit %s of %s: %w", head.Hash, repository, err)
		}
	}
	tree, err := object.GetTree(b.store, root)
	if err != nil {
		return out, fmt.Errorf("compare with %s: %w", repository, err)
	}
	wants, err := filesOf(tree)
	if err != nil {
		return out, fmt.Errorf("compare with %s: %w", repository, err)
	}
	for name, hash := range wants {
		switch was, there := has[name]; {
		case !there:
			out.Added = append(out.Added, name)
		case was != hash:
			out.Changed = append(out.Changed, name)
		}
	}
	for name := range has {
		if _, stays := wants[name]; !stays {
			out.Removed = append(out.Removed, name)
		}
	}
	for _, names := range [][]string{out.Added, out.Changed, out.Removed} {
		slices.Sort(names)
	}
	return out, nil
}

// filesOf are the files of a tree, with the hashes of what is in them.
func filesOf(tree *object.Tree) (map[string]plumbing.Hash, error) {
	out := map[string]plumbing.Hash{}
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	seen, text := 0, 0 // of folders, too: there may be many and no file in them
	for {
		name, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		seen, text = seen+1, text+len(name)
		if seen > mostItems || text > mostBytes {
			return nil, errTooLarge
		}
		if entry.Mode.IsFile() {
			out[name] = entry.Hash
		}
	}
}
