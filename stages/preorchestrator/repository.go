package preorchestrator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// runRepository tells Argo CD how it reads a repository of the user's, which is asked first if it is read by HTTPS.
func runRepository(ctx context.Context, env *step.Env, in contract.RepositoryInput) (contract.Repository, error) {
	c, err := env.Connect()
	if err != nil {
		return contract.Repository{}, err
	}
	data := map[string][]byte{"type": []byte("git"), "url": []byte(in.URL)}
	if in.Username != "" {
		data["username"] = []byte(in.Username)
	}
	for name, key := range map[string]struct {
		given bool
		in    string
	}{contract.GitPassword: {in.Password, "password"}, contract.GitKey: {in.Key, "sshPrivateKey"}} {
		if !key.given {
			continue
		}
		value, err := userSecret(env, name)
		if err != nil {
			return contract.Repository{}, err
		}
		env.Redact(string(value))
		data[key.in] = value
	}
	if !in.Key { // a wrong key is for Argo CD to report
		if err := probeRepository(ctx, env, in, data["password"]); err != nil {
			return contract.Repository{}, err
		}
	}
	all := kube.Labels(env.Deployment)
	all["argocd.argoproj.io/secret-type"] = "repository"
	if err := writeSecret(ctx, c, in.Namespace, argoRepository, corev1.SecretTypeOpaque, all, data); err != nil {
		return contract.Repository{}, err
	}
	// Argo CD's pods do not start without it.
	trusted := map[string]string{}
	if in.CA != "" {
		server := url.URL{Host: in.Host}
		trusted[server.Hostname()] = in.CA // Argo CD looks for it without the port
	}
	labels := kube.Labels(env.Deployment)
	labels["app.kubernetes.io/part-of"] = "argocd"
	if _, err := writeConfigMap(ctx, c, in.Namespace, argoTLSCerts, labels, trusted); err != nil {
		return contract.Repository{}, err
	}
	return contract.Repository{URL: in.URL}, nil
}

// askLimit is how long the server of a repository may take to answer.
const askLimit = 20 * time.Second

// probeRepository lists the branches of a repository by HTTPS, as Argo CD will minutes later. A server that
// it does not reach is only reported: Argo CD is in the cluster, this is not.
func probeRepository(ctx context.Context, env *step.Env, in contract.RepositoryInput, password []byte) error {
	err := listBranches(ctx, in, password)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case err == nil:
		env.Progress("%s can be read", in.URL)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case untrusted, errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, transport.ErrEmptyRemoteRepository): // Argo CD would be told the same
		return &fault.Fault{
			Code: gitserver.CodeRepository, Class: fault.Step, Op: "ask for the branches of " + in.URL, Err: err,
			Fix: "give an account that may read it (git.username, git.password), and the CA of a server whose certificate no public one has signed (git.ca)",
		}
	default:
		env.Progress("%s cannot be asked from here, Argo CD will tell: %v", in.URL, err)
	}
	return nil
}

func listBranches(ctx context.Context, in contract.RepositoryInput, password []byte) error {
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
	return err
}
