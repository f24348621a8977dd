package gitserver

import "context"

// Head returns the commit that branch of repository ("owner/name") points at
// and the tree of that commit, both as 40 hex digits, or empty strings if the
// repository has no such branch.
func (s *Server) Head(ctx context.Context, repository, branch string) (commit, tree string, err error) {
	at, c, err := s.head(ctx, repository, branch)
	if err != nil || c == nil {
		return "", "", err
	}
	return at.String(), c.TreeHash.String(), nil
}
