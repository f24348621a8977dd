package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/nodedata"
)

// ClusterLost reports whether the volume of the cluster, which this engine has had, is empty
// though the state has the access to it, and no destroy has emptied it. It is not, where the
// volume is not mounted.
func (p Place) ClusterLost(ctx context.Context, s *store.Store) (bool, error) {
	if p.Node == "" {
		return false, nil
	}
	if empty, err := nodedata.Empty(p.Node); err != nil || !empty {
		if err != nil {
			err = fmt.Errorf("look for the cluster: %w", err)
		}
		return false, err
	}
	if _, known, err := p.HasKubeconfig(ctx, s); err != nil || !known {
		return false, err
	}
	claim, err := ClaimOf(ctx, s)
	if err != nil {
		return false, err
	}
	if away, err := p.Away(ctx, s, claim); err != nil || away {
		return false, err
	}
	last, err := lastRun(ctx, s)
	return err == nil && (last == nil || last.Workflow != config.Destroy), err
}

// lastRun is the record of the last run; nil if there is none, or none that can be read.
func lastRun(ctx context.Context, s *store.Store) (*report.Run, error) {
	run, err := Latest(ctx, s)
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := File(ctx, s, run, report.RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if record, err := report.Decode(text); err == nil {
		return record, nil
	}
	return nil, nil // whoever asks for the run is told what is wrong with it
}
