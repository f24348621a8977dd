package gitserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// Commit is the metadata of a commit.
type Commit struct {
	Author  string // name
	Email   string
	Message string
	When    time.Time
}

// gitTimeout limits one exchange with the git server.
const gitTimeout = 2 * time.Minute

// head is the commit that branch of repository points at, with its trees; zero and nil if the
// repository has no such branch. With errTooLarge, at is the commit nevertheless.
func (s *Server) head(ctx context.Context, repository, branch string) (at plumbing.Hash, commit *object.Commit, err error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	ep, err := s.endpoint(repository)
	if err != nil {
		return at, nil, err
	}
	session, err := githttp.NewClient(s.client()).NewUploadPackSession(ep, s.auth())
	if err != nil {
		return at, nil, fmt.Errorf("read %s: %w", repository, err)
	}
	defer func() { _ = session.Close() }()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return at, nil, nil
	}
	if err != nil {
		return at, nil, fmt.Errorf("list the branches of %s: %w", repository, err)
	}
	at, ok := adv.References[plumbing.NewBranchReferenceName(branch).String()]
	if !ok {
		return at, nil, nil
	}
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Wants = []plumbing.Hash{at}
	if adv.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return at, nil, fmt.Errorf("fetch %s: %w", repository, err)
		}
	}
	if adv.Capabilities.Supports(capability.Filter) { // of files the hashes are enough
		req.Filter = packp.FilterBlobNone()
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return at, nil, fmt.Errorf("fetch %s: %w", repository, err)
		}
	}
	resp, err := session.UploadPack(ctx, req)
	if err != nil {
		return at, nil, fmt.Errorf("fetch %s: %w", repository, err)
	}
	defer func() { _ = resp.Close() }()
	store := memory.NewStorage()
	if err := unpack(store, unband(req.Capabilities, resp)); err != nil {
		return at, nil, fmt.Errorf("read the commit %s of %s: %w", at, repository, err)
	}
	c, err := object.GetCommit(store, at)
	if err != nil {
		return at, nil, fmt.Errorf("read the commit %s of %s: %w", at, repository, err)
	}
	return at, c, nil
}

// Push makes branch of repository contain exactly t. If it already does, nothing is
// written and changed is false; otherwise one commit is added to the branch. Push fails
// if somebody else moves the branch at the same time.
func (s *Server) Push(ctx context.Context, repository, branch string, t Tree, c Commit) (revision string, changed bool, err error) {
	store := memory.NewStorage()
	b := &builder{store: store}
	tree, err := b.tree(t)
	if err != nil {
		return "", false, err
	}
	at, was, err := s.head(ctx, repository, branch)
	if err != nil && !errors.Is(err, errTooLarge) { // such a branch is to have another tree
		return "", false, err
	}
	if was != nil && was.TreeHash == tree {
		return at.String(), false, nil
	}
	if s.planned {
		return "", false, plan.Later("push to %s", repository)
	}
	who := object.Signature{Name: c.Author, Email: c.Email, When: c.When.UTC().Truncate(time.Second)}
	commit := &object.Commit{Author: who, Committer: who, Message: strings.TrimSpace(c.Message) + "\n", TreeHash: tree}
	if !at.IsZero() {
		commit.ParentHashes = []plumbing.Hash{at}
	}
	next, err := b.commit(commit)
	if err != nil {
		return "", false, err
	}
	cmd := &packp.Command{Name: plumbing.NewBranchReferenceName(branch), Old: at, New: next}
	if err := s.send(ctx, repository, cmd, b); err != nil {
		return "", false, err
	}
	return next.String(), true, nil
}

// send uploads the objects of b and updates one reference.
func (s *Server) send(ctx context.Context, repository string, cmd *packp.Command, b *builder) error {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	ep, err := s.endpoint(repository)
	if err != nil {
		return err
	}
	session, err := githttp.NewClient(s.client()).NewReceivePackSession(ep, s.auth())
	if err != nil {
		return fmt.Errorf("push to %s: %w", repository, err)
	}
	defer func() { _ = session.Close() }()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil && !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return fmt.Errorf("push to %s: %w", repository, err)
	}
	caps := capability.NewList()
	if adv != nil {
		caps = adv.Capabilities
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(caps)
	if err := req.Capabilities.Set(capability.ReportStatus); err != nil {
		return fmt.Errorf("push to %s: %w", repository, err)
	}
	req.Commands = []*packp.Command{cmd}
	pr, pw := io.Pipe()
	req.Packfile = pr
	go func() {
		_, err := packfile.NewEncoder(pw, b.store, false).Encode(b.made, 0)
		pw.CloseWithError(err) // nil becomes io.EOF
	}()
	report, err := session.ReceivePack(ctx, req)
	_ = pr.Close() // stops the encoder if the request did not read all of it
	if lost := lock.Guard(ctx); err != nil && lost != nil {
		return fmt.Errorf("push to %s: %w", repository, lost) // go-git does not wrap it
	}
	if err != nil {
		return fmt.Errorf("push to %s: %w", repository, err)
	}
	if report == nil {
		return fmt.Errorf("push to %s: the server sent no report", repository)
	}
	if err := report.Error(); err != nil {
		return fmt.Errorf("push to %s: %w", repository, err)
	}
	return nil
}

// unband extracts the pack from a stream that also carries messages, if the request
// allowed the server to send one.
func unband(caps *capability.List, r io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

func (s *Server) endpoint(repository string) (*transport.Endpoint, error) {
	ep, err := transport.NewEndpoint(strings.TrimSuffix(s.URL, "/") + "/" + repository + ".git")
	if err != nil {
		return nil, fmt.Errorf("address of the repository %s: %w", repository, err)
	}
	return ep, nil
}

func (s *Server) auth() transport.AuthMethod {
	if s.Username == "" {
		return nil
	}
	return &githttp.BasicAuth{Username: s.Username, Password: string(s.Password.Reveal())}
}
