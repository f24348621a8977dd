package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

// cluster is the Kubernetes API as this Pod's service account.
type cluster struct {
	url    string
	client *http.Client
	token  string // file
}

func inCluster(env *web.Env) (*cluster, error) {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	text, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &cluster{
		url:    "https://" + net.JoinHostPort(env.Optional("KUBERNETES_SERVICE_HOST"), env.Optional("KUBERNETES_SERVICE_PORT")),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}},
		token:  account + "token",
	}, nil
}

var errNotFound = errors.New("not found")

// call sends in, unless it is nil, and decodes the answer into out, unless that is nil.
func (c *cluster) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(c.token) // anew, for it is renewed
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w", method, path, errNotFound)
	case res.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s: %.500s", method, path, res.Status, text)
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}
