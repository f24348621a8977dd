package readiness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// againLimit is how long pods may take to run again in a cluster that was stopped.
const againLimit = 2 * time.Minute

// AwaitPods waits, two minutes at most, until the pods that ran before the cluster was stopped run
// again: the node at url is then ready. If they do not, it reports that and returns: what needs
// them says what does not work. It does nothing for an empty url.
func AwaitPods(ctx context.Context, c *kube.Client, url string) {
	if url == "" {
		return
	}
	limited, cancel := context.WithTimeout(ctx, againLimit)
	defer cancel()
	err := c.WaitFor(limited, "the pods that ran before to run again", kube.Poll, func(ctx context.Context) (bool, string, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		ready, seen, err := Node(ctx, c, url)
		if err != nil {
			return false, err.Error(), nil
		}
		return ready, seen, nil
	})
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		err = f.Err
	}
	if err != nil && !errors.Is(err, plan.ErrLater) {
		c.Report("not every pod is back: %v", err)
	}
}

// Node returns whether the local cluster's node at url is ready, and what it says, in a clause. It
// is reached with the certificate of the kubeconfig and past every proxy.
func Node(ctx context.Context, c *kube.Client, url string) (ready bool, seen string, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if c.Config != nil {
		if transport.TLSClientConfig, err = rest.TLSConfigFor(c.Config); err != nil {
			return false, "", err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, "", err
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode == http.StatusOK, readHealth(string(body)), err
}

// readHealth summarises the health that a node of Slipway reports; see containers/node.
func readHealth(text string) string {
	type parts map[string]struct {
		State    string `json:"state"`
		Restarts int    `json:"restarts"`
		Detail   string `json:"detail"`
	}
	var h struct {
		Parts      parts `json:"parts"`
		Components parts `json:"components"`
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil || h.Parts == nil {
		return "its node says: " + OneLine(text)
	}
	var bad []string
	for _, all := range []parts{h.Components, h.Parts} { // parts wait for components
		for _, name := range slices.Sorted(maps.Keys(all)) {
			p := all[name]
			if (p.State == "running" || p.State == "ready") && p.Restarts == 0 {
				continue
			}
			s := name + " is " + p.State
			if p.Restarts > 0 {
				s += fmt.Sprintf(", restarted %d times", p.Restarts)
			}
			if p.Detail != "" {
				s += " (" + OneLine(p.Detail) + ")"
			}
			bad = append(bad, s)
		}
	}
	if len(bad) == 0 {
		return "its node says that it is ready"
	}
	return "its node says: " + strings.Join(bad, "; ")
}
