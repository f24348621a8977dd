package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// againLimit is how long pods may take to run again in a cluster that was stopped.
const againLimit = 2 * time.Minute

// AwaitPods waits, two minutes at most, until the pods that ran before the cluster was stopped
// run again: url then answers with 200. If they do not, it tells so and returns: what needs
// them says what does not work. An empty url is not asked.
func (c *Client) AwaitPods(ctx context.Context, url string) {
	if err := c.podsAgain(ctx, url); err != nil && !errors.Is(err, plan.ErrLater) {
		c.progress("not every pod is back: %v", err)
	}
}

func (c *Client) podsAgain(ctx context.Context, url string) error {
	if url == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, againLimit)
	defer cancel()
	err := c.WaitFor(limited, "the pods that ran before to run again", Poll, func(ctx context.Context) (bool, string, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		status, text, err := c.AskNode(ctx, url)
		if err != nil {
			return false, err.Error(), nil
		}
		return status == http.StatusOK, notBack(text), nil
	})
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		err = f.Err
	}
	return err
}

// notBack is what the health of a node says of the pods, or all that it says.
func notBack(health string) string {
	var h struct {
		Parts map[string]struct {
			Detail string `json:"detail"`
		} `json:"parts"`
	}
	if err := json.Unmarshal([]byte(health), &h); err == nil && h.Parts["pods"].Detail != "" {
		return h.Parts["pods"].Detail
	}
	return OneLine(health)
}

// AskNode asks the local cluster's node how it is, at url, with the certificate of the
// kubeconfig and past every proxy. It returns the status code and the text, which is cut
// after 64 KiB.
func (c *Client) AskNode(ctx context.Context, url string) (status int, text string, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if c.Config != nil {
		if transport.TLSClientConfig, err = rest.TLSConfigFor(c.Config); err != nil {
			return 0, "", badKubeconfig(err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return answer.StatusCode, string(body), err
}
