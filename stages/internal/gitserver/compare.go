package gitserver

import (
	"context"
	"crypto/sha1" //nolint:gosec // what git names its objects by
	"fmt"
	"net/http"
	"slices"
)

// mostEntries is how many files and folders of a branch are read at most. Others may push to it,
// and a tree may contain another one many times.
const mostEntries = 100_000

// Tree is the content of a repository: regular files by slash-separated path.
type Tree map[string][]byte

// Comparison is what a push of a tree would change.
type Comparison struct {
	Revision                string   // commit that the branch is at; empty: there is no such branch
	Added, Changed, Removed []string // files, by their paths
}

// file is the mode of a file in a commit, and the hash of its content.
type file struct {
	Mode string `json:"mode"`
	Hash string `json:"sha"`
}

// regular is the mode of every file of a Tree.
const regular = "100644"

// Compare returns what Push would change, and changes nothing.
func (s *Server) Compare(ctx context.Context, repository, branch string, t Tree) (Comparison, error) {
	out, _, err := s.compare(ctx, repository, branch, t)
	return out, err
}

// compare is Compare that also returns the files of the branch.
func (s *Server) compare(ctx context.Context, repository, branch string, t Tree) (out Comparison, has map[string]file, err error) {
	if out.Revision, err = s.head(ctx, repository, branch); err != nil {
		return out, nil, fmt.Errorf("read branch %s of %s: %w", branch, repository, err)
	}
	if has, err = s.files(ctx, repository, out.Revision); err != nil {
		return out, nil, fmt.Errorf("read the commit %s of %s: %w", out.Revision, repository, err)
	}
	for name, content := range t {
		switch was, exists := has[name]; {
		case !exists:
			out.Added = append(out.Added, name)
		case was != file{regular, hashOf(content)}:
			out.Changed = append(out.Changed, name)
		}
	}
	for name := range has {
		if _, stays := t[name]; !stays {
			out.Removed = append(out.Removed, name)
		}
	}
	for _, names := range [][]string{out.Added, out.Changed, out.Removed} {
		slices.Sort(names)
	}
	return out, has, nil
}

// hashOf is the name that git gives a file with that content.
func hashOf(content []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...))) //nolint:gosec // see the import
}

// head is the commit that branch of repository points at; empty if there is no such branch.
func (s *Server) head(ctx context.Context, repository, branch string) (string, error) {
	var b struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	err := s.api(ctx, http.MethodGet, "/api/v1/repos/"+repository+"/branches/"+branch, nil, &b)
	if isStatus(err, http.StatusNotFound) {
		err = s.api(ctx, http.MethodGet, "/api/v1/repos/"+repository, nil, nil)
	}
	return b.Commit.ID, err
}

// files lists the files of a commit by their paths; an empty commit has none. The server sends
// their hashes alone: how large they are does not matter.
func (s *Server) files(ctx context.Context, repository, commit string) (map[string]file, error) {
	out := map[string]file{}
	for page := 1; commit != ""; page++ {
		var got struct {
			Tree []struct {
				file

				Path string `json:"path"`
				Type string `json:"type"`
			} `json:"tree"`
			Truncated bool `json:"truncated"`
			Total     int  `json:"total_count"`
		}
		path := fmt.Sprintf("/api/v1/repos/%s/git/trees/%s?recursive=true&page=%d", repository, commit, page)
		if err := s.api(ctx, http.MethodGet, path, nil, &got); err != nil {
			return nil, err
		}
		if got.Total > mostEntries || page > mostEntries {
			return nil, fmt.Errorf("it has more than %d files and folders", mostEntries)
		}
		for _, e := range got.Tree {
			if e.Type != "tree" {
				out[e.Path] = e.file
			}
		}
		if !got.Truncated {
			break
		}
	}
	return out, nil
}
