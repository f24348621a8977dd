// Package tree serves the GitOps tree of a platform release as users have it: in a private Git
// repository, over HTTPS.
package tree

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config/certificate"
)

// Server serves a repository until Close. On its branch main, the folder gitops has the tree.
type Server struct {
	URL   string
	Token string // which it asks for as the password, of whatever user
	CA    string // PEM; of the authority, its own, that has signed the server's certificate

	tokenFile string
	server    *http.Server
	ended     chan error
}

// Serve makes the repository in dir, an empty folder, of the tree of the release in the folder
// release, and serves it at an IP address of this machine.
func Serve(ctx context.Context, dir, release, address string) (*Server, error) {
	s := &Server{Token: rand.Text(), tokenFile: filepath.Join(dir, "token"), ended: make(chan error, 1)}
	if err := os.WriteFile(s.tokenFile, []byte(s.Token), 0o600); err != nil {
		return nil, fmt.Errorf("write the token: %w", err)
	}
	if err := commit(ctx, filepath.Join(dir, "tree"), filepath.Join(release, "gitops")); err != nil {
		return nil, err
	}
	programs, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("ask git where its programs are: %w", err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	shown, err := s.certify(address)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("serve the tree: %w", err)
	}
	s.URL = "https://" + listener.Addr().String() + "/tree/.git"
	s.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{shown}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, token, _ := r.BasicAuth(); token != s.Token {
				w.Header().Set("WWW-Authenticate", `Basic realm="tree"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			backend.ServeHTTP(w, r)
		}),
	}
	go func() { s.ended <- s.server.ServeTLS(listener, "", "") }()
	return s, nil
}

// commit makes a repository in dir of what is in a folder.
func commit(ctx context.Context, dir, folder string) error {
	if err := os.CopyFS(filepath.Join(dir, "gitops"), os.DirFS(folder)); err != nil {
		return fmt.Errorf("copy the tree: %w", err)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=Tests", "-c", "user.email=tests@example.com", "commit", "-q", "-m", "the tree"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("commit the tree: git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// certify makes a certificate for an address, and the authority that signs it.
func (s *Server) certify(address string) (tls.Certificate, error) {
	now := time.Now()
	ca, err := certificate.NewCA("the tests", now)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := certificate.NewLeaf(ca, []string{address}, now)
	if err != nil {
		return tls.Certificate{}, err
	}
	s.CA = string(ca.Certificate)
	return tls.X509KeyPair(leaf.Certificate, leaf.Key)
}

// Section is the section git of a configuration that reads the tree. The token is in a file of
// the folder that Serve was given.
func (s *Server) Section() string {
	return fmt.Sprintf("git:\n  url: %s\n  revision: main\n  path: gitops\n  username: argocd\n  password: file:%s\n  ca: %q\n", s.URL, s.tokenFile, s.CA)
}

// Close ends the server. The error says why it had ended before, too.
func (s *Server) Close() error {
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve the tree: %w", ended))
	}
	return err
}
