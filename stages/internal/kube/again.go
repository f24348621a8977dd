package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// againLimit is how long pods may take to run again in a cluster that was stopped.
const againLimit = 2 * time.Minute

// AwaitPods waits, two minutes at most, until the pods that ran before the cluster was stopped
// run again: url then answers with 200. If they do not, it tells so and returns: what needs
// them says what does not work. An empty url is not asked.
func (c *Client) AwaitPods(ctx context.Context, url string) {
	if url == "" {
		return
	}
	limited, cancel := context.WithTimeout(ctx, againLimit)
	defer cancel()
	err := c.WaitFor(limited, "the pods that ran before to run again", Poll, func(ctx context.Context) (bool, string, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, "", err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false, err.Error(), nil
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return answer.StatusCode == http.StatusOK, strings.Join(strings.Fields(string(text)), " "), err
	})
	if err == nil || errors.Is(err, dryrun.ErrLater) {
		return
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		err = f.Err
	}
	c.progress("not every pod is back: %v", err)
}
