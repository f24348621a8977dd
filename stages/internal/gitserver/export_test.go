package gitserver

import "context"

// Head returns the commit that branch of repository ("owner/name") points at; empty if the
// repository has no such branch.
func (s *Server) Head(ctx context.Context, repository, branch string) (string, error) {
	return s.head(ctx, repository, branch)
}
