package gitserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
