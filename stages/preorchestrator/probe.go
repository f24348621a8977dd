package preorchestrator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/step"
)

// askLimit is how long the server of a repository may take to answer.
const askLimit = 20 * time.Second

// answer is an error that Argo CD would get as well: its server has answered so, or what it is
// asked with is wrong.
type answer struct{ error }

func (a answer) Unwrap() error { return a.error }

// askRepository has a repository list its branches, as Argo CD will: what it would find out
// minutes later, when an app waits for it. secret is the password, or the private key for SSH.
// That the server cannot be reached is only told of: Argo CD is in the cluster, this is not.
func askRepository(ctx context.Context, env *step.Env, in contract.RepositoryInput, secret []byte) error {
	fix := "give who may read it (git.username, git.password), and the CA of a server whose certificate no public one has signed (git.ca)"
	list := branchesByHTTPS
	if in.Key {
		fix = "give a key that may read it (git.sshKey), and the server's lines of known_hosts (git.knownHosts)"
		list = branchesBySSH
	}
	err := list(ctx, in, secret)
	_, answered := errors.AsType[answer](err)
	switch {
	case err == nil:
		env.Progress("%s can be read", in.URL)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case answered:
		return &fault.Fault{Code: gitserver.CodeRepository, Class: fault.Step, Op: "ask for the branches of " + in.URL, Err: err, Fix: fix}
	default:
		env.Progress("%s cannot be asked from here, Argo CD will tell: %v", in.URL, err)
	}
	return nil
}

// branchesByHTTPS has a repository that is read by HTTPS list its branches.
func branchesByHTTPS(ctx context.Context, in contract.RepositoryInput, password []byte) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	trusted, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("read the certificates of public CAs: %w", err)
	}
	trusted.AppendCertsFromPEM([]byte(in.CA)) // the configuration has been validated
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	defer own.CloseIdleConnections()
	var as transport.AuthMethod
	if len(password) > 0 {
		as = &githttp.BasicAuth{Username: in.Username, Password: string(password)}
	}
	at, err := transport.NewEndpoint(in.URL)
	if err != nil {
		return err
	}
	session, err := githttp.NewClient(&http.Client{Transport: own}).NewUploadPackSession(at, as)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // there is an answer, or none
	_, err = session.AdvertisedReferencesContext(ctx)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted ||
		errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) ||
		errors.Is(err, transport.ErrRepositoryNotFound) || errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return answer{err}
	}
	return err
}
