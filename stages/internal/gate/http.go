package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

const maxBody = 1 << 20

// http asks a Service through the API server, which reaches it from inside the cluster.
func http(ctx context.Context, c *kube.Client, g platform.HTTPGate) (bool, string, error) {
	namespace, name, port, err := platform.ParseService(g.Service)
	if err != nil {
		return false, "", err
	}
	asked, err := url.Parse(g.Path)
	if err != nil {
		return false, "", fmt.Errorf("the path %s: %w", g.Path, err)
	}
	base, _, err := rest.DefaultServerUrlFor(c.Config)
	if err != nil {
		return false, "", fmt.Errorf("the API server's address: %w", err)
	}
	scheme := "http"
	if g.TLS {
		scheme = "https"
	}
	inside := url.URL{Path: path.Clean("/" + asked.Path)} // no .. leads out of the Service
	u := base.JoinPath("api/v1/namespaces", namespace, "services", fmt.Sprintf("%s:%s:%d", scheme, name, port), "proxy", inside.EscapedPath())
	if strings.HasSuffix(asked.Path, "/") && !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.RawQuery = asked.RawQuery
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return false, "", err
	}
	client.CheckRedirect = func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse }
	req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, u.String(), nil)
	if err != nil {
		return false, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, err.Error(), nil
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return false, "read the response: " + err.Error(), nil
	case unreached(body) != "":
		return false, unreached(body), nil
	case resp.StatusCode != g.Status:
		return false, fmt.Sprintf("answered %d, not %d%s", resp.StatusCode, g.Status, excerpt(body)), nil
	case !strings.Contains(string(body), g.Contains):
		return false, fmt.Sprintf("the response does not contain %q%s", g.Contains, excerpt(body)), nil
	}
	return true, fmt.Sprintf("answered %d", resp.StatusCode), nil
}

// unreached says that the API server itself has answered, for it cannot ask a Service: there is
// none, nothing is ready behind it, or it may not be asked. It is empty for what a Service
// answers, also if that is an API server, unless this calls itself unavailable.
func unreached(body []byte) string {
	var s metav1.Status
	if json.Unmarshal(body, &s) != nil || s.Kind != "Status" || s.APIVersion != "v1" || s.Status != metav1.StatusFailure {
		return ""
	}
	if s.Reason == metav1.StatusReasonServiceUnavailable || s.Details != nil && s.Details.Group == "" && s.Details.Kind == "services" {
		return "the API server does not reach it: " + readiness.OneLine(cmp.Or(s.Message, string(s.Reason)))
	}
	return ""
}

func excerpt(body []byte) string {
	text := readiness.Short(readiness.OneLine(string(body)), 120)
	if text == "" {
		return ""
	}
	return ": " + text
}
