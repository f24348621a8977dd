package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// resolve asks Argo CD which commit the root Application's branch or tag in a repository
// of the user's is at. Nobody but Argo CD needs to reach that repository.
func resolve(ctx context.Context, c *kube.Client, in contract.AppsInput, deadline time.Duration) (string, error) {
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := c.Asking().Patch(limited, "refresh the Application "+RootApp, argo.Applications(), in.Namespace, RootApp, argo.HardRefresh())
	if err != nil {
		return "", err
	}
	revision := ""
	err = c.WaitFor(limited, "Argo CD to read "+in.Repository, kube.Poll, func(ctx context.Context) (bool, string, error) {
		app, err := argo.Get(ctx, c, in.Namespace, RootApp)
		if err != nil {
			return false, "", err
		}
		if app.Refreshing || app.Outdated || app.Revision == "" || len(app.Conditions) > 0 && app.Sync == "Unknown" {
			return false, app.Explain(), nil
		}
		revision = app.Revision
		return true, "", nil
	})
	if fault.ClassOf(err) == fault.Timeout {
		err = &fault.Fault{
			Code: gitserver.CodeRepository, Class: fault.Step, Op: fmt.Sprintf("read %s of %s", in.Target, in.Repository), Err: err,
			Fix: "correct git in the configuration, or give Argo CD access to the server, then run the same command again",
		}
	}
	return revision, err
}
