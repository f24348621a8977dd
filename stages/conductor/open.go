package conductor

import (
	"context"
	"encoding/json"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// open has the run, which has the lock, find out what the state knows, and gives a deployment
// that has no identity one. Without the cluster only an install and a destroy go on.
func (r *run) open(ctx context.Context) error {
	if !installs(r.workflow.Name) && !r.workflow.Removes {
		return nil
	}
	const at = "/slipway/opened.json"
	over, err := r.over()
	if err != nil {
		return err
	}
	var now contract.Opened
	args := []string{"slipway", "state", "open", at, "--deployment", r.name, "--run", r.steps.requests.run}
	if err := r.commands.result(ctx, r.looking(r.indexed(containers.Exec{Args: append(args, over...), Result: at})), &now); err != nil {
		return err
	}
	r.past, r.steps.known = now.Phases, now.Known
	return r.judge(now)
}

// over are the flags that say what the run is to bring over what is installed; none where the
// records do not tell what that is, as of a cluster that others run, or where only the cluster
// can, as of a rollback.
func (r *run) over() ([]string, error) {
	release := r.opts.Release
	if !r.node || release == nil || r.workflow.Name != config.Install && r.workflow.Name != config.Upgrade {
		return nil, nil
	}
	text, err := json.Marshal(contract.Over{
		Platform: release.Name, Version: release.Version, UpgradableFrom: release.UpgradableFrom, Data: len(release.Data) > 0,
		Upgrade: r.workflow.Name == config.Upgrade, Change: r.inputs.Change,
	})
	return []string{"--over", string(text)}, err
}

// who are the flags that say whose run it is.
func (r *run) who() []string {
	return []string{"--user", r.opts.User, "--host", r.opts.Host, "--run", r.steps.requests.run}
}
