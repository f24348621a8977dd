package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// accountDir is where a Pod finds what its service account is to the API server.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount/"

// Cluster is the Kubernetes API as this Pod's service account.
type Cluster struct {
	URL    string
	Client *http.Client
	// Token returns what the account shows itself with; it changes now and then.
	Token func() (string, error)
}

// InCluster is the API of the cluster that this Pod runs in.
func InCluster(getenv func(string) string) (*Cluster, error) {
	text, err := os.ReadFile(accountDir + "ca.crt")
	if err != nil {
		return nil, fmt.Errorf("read what to trust for the Kubernetes API: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%sca.crt holds no certificate", accountDir)
	}
	return &Cluster{
		URL:    "https://" + net.JoinHostPort(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")),
		Client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}},
		Token: func() (string, error) {
			token, err := os.ReadFile(accountDir + "token")
			return strings.TrimSpace(string(token)), err
		},
	}, nil
}

// statusError is what the API server answered in place of what was asked for.
type statusError struct {
	method, path string
	code         int
	body         string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", e.method, e.path, e.code, e.body)
}

// call sends in, if it is not nil, and decodes the answer into out, if that is not nil. An
// answer that is no success is a *statusError.
func (c *Cluster) call(ctx context.Context, method, path, kind string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return err
	}
	token, err := c.Token()
	if err != nil {
		return fmt.Errorf("read the token of the service account: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if in != nil {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode/100 != 2 {
		return &statusError{method, path, res.StatusCode, string(text[:min(len(text), 500)])}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

const mergePatch = "application/merge-patch+json"
