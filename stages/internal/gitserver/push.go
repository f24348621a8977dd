package gitserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// Commit is the metadata of a commit.
type Commit struct {
	Author  string // name
	Email   string
	Message string
}

// operation is a change of one file, as the git server's API has it.
type operation struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Content   []byte `json:"content,omitempty"`
	Hash      string `json:"sha,omitempty"` // that the file has; the server rejects the change if it has another one
}

// Push makes branch of repository contain exactly t. If it already does, nothing is written and
// changed is false; otherwise one commit is added to the branch. The server replaces no folder or
// link by a file: what is in the way of a file goes in a commit before. Push fails if somebody
// else moves the branch at the same time.
func (s *Server) Push(ctx context.Context, repository, branch string, t Tree, c Commit) (revision string, changed bool, err error) {
	found, has, err := s.compare(ctx, repository, branch, t)
	if err != nil {
		return "", false, err
	}
	var before, rest []operation
	for _, name := range found.Removed {
		gone := operation{Operation: "delete", Path: name, Hash: has[name].Hash}
		if inTheWay(name, found.Added) {
			before = append(before, gone)
		} else {
			rest = append(rest, gone)
		}
	}
	for _, name := range found.Changed {
		if has[name].Mode == regular {
			rest = append(rest, operation{Operation: "update", Path: name, Hash: has[name].Hash, Content: t[name]})
			continue
		}
		before = append(before, operation{Operation: "delete", Path: name, Hash: has[name].Hash})
		found.Added = append(found.Added, name)
	}
	for _, name := range found.Added {
		rest = append(rest, operation{Operation: "create", Path: name, Content: t[name]})
	}
	revision = found.Revision
	for _, changes := range [][]operation{before, rest} {
		if len(changes) == 0 {
			continue
		}
		if s.planned {
			return "", false, plan.Later("push to %s", repository)
		}
		if revision, err = s.commit(ctx, repository, branch, revision, changes, c); err != nil {
			return "", false, fmt.Errorf("push to %s: %w", repository, err)
		}
		changed = true
	}
	return revision, changed, nil
}

// inTheWay reports whether a file is where one of others needs a folder, or in a folder where one
// of them is to be.
func inTheWay(name string, others []string) bool {
	for _, other := range others {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return true
		}
	}
	return false
}

// commit adds a commit to a branch that is at a revision, and returns it.
func (s *Server) commit(ctx context.Context, repository, branch, at string, changes []operation, c Commit) (string, error) {
	who := map[string]string{"name": c.Author, "email": c.Email}
	in := map[string]any{"branch": branch, "message": c.Message, "author": who, "committer": who, "files": changes}
	type commit struct {
		SHA     string   `json:"sha"`
		Parents []commit `json:"parents"`
	}
	var out struct {
		Commit commit `json:"commit"`
	}
	if err := s.api(ctx, http.MethodPost, "/api/v1/repos/"+repository+"/contents", in, &out); err != nil {
		return "", err
	}
	parent := ""
	if len(out.Commit.Parents) > 0 {
		parent = out.Commit.Parents[0].SHA
	}
	if parent != at {
		return "", errors.New("somebody else has pushed to it at the same time")
	}
	return out.Commit.SHA, nil
}

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
		case was != file{regular, plumbing.ComputeHash(plumbing.BlobObject, content).String()}:
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
