package incontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/nodedata"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// codeNoSave: a file does not restore the cluster of the deployment.
const codeNoSave fault.Code = "DEP-013"

// SaveCluster writes what the cluster has on its volume to the directory out, which it makes,
// for a run, which has the lock.
func (s *State) SaveCluster(ctx context.Context, run, deployment, out string) error {
	return s.alone(ctx, run, func(ctx context.Context, w *state.Work) (err error) {
		half, err := nodedata.HalfRestored(s.place.Node)
		if err != nil {
			return err
		}
		if half {
			return containers.HalfRestored("save the cluster", nil)
		}
		h := nodedata.Header{Version: nodedata.Version, Deployment: deployment, At: time.Now().UTC().Truncate(time.Second)}
		identity, err := state.Identity(ctx, w.Store)
		if err != nil {
			return err
		}
		if identity != nil {
			h.ID = identity.ID
		}
		if err := os.MkdirAll(out, 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(out, contract.ClusterFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := nodedata.Save(ctx, s.place.Node, h, f); err != nil {
			return fmt.Errorf("save the cluster: %w", err)
		}
		return nil
	})
}

// RestoreCluster puts what is in a file onto the volume of the cluster for a run of who, which
// has the lock. It replaces a cluster, or takes that of
// another deployment of the name, only with force. A deployment of which nothing is known is the
// one that it was saved of from then on.
func (s *State) RestoreCluster(ctx context.Context, who lock.Holder, deployment, file string, force bool) error {
	return s.alone(ctx, who.Run, func(ctx context.Context, w *state.Work) error {
		h, err := nodedata.Check(ctx, file)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return noSave(fmt.Errorf("it is no file of slipway cluster --save, or not whole: %w", err), "take the file as it was saved")
		}
		if h.Deployment != deployment {
			return noSave(fmt.Errorf("it is of deployment %s", h.Deployment), "restore it there: slipway cluster --restore FILE --name "+fault.Quote(h.Deployment))
		}
		const forced = "slipway cluster --restore FILE --force"
		identity, err := state.Identity(ctx, w.Store)
		if err != nil {
			return err
		}
		empty, err := nodedata.Empty(s.place.Node)
		if err != nil {
			return fmt.Errorf("look for a cluster: %w", err)
		}
		switch {
		case force:
		case identity != nil && h.ID != "" && identity.ID != h.ID:
			return noSave(errors.New("it is of an earlier deployment of that name, which was removed"), "if it is wanted nevertheless: "+forced)
		case !empty:
			return noSave(errors.New("there is a cluster, whose data would be lost"), "save that first; then, in its place: "+forced)
		}
		if err := nodedata.Restore(ctx, s.place.Node, file); err != nil {
			return fmt.Errorf("restore the cluster: %w", err)
		}
		if h.ID != "" {
			if err := state.TakeIdentity(ctx, w.Store, w.Generation, h.ID, deployment, h.At); err != nil {
				return err
			}
		}
		return nil
	})
}

func noSave(err error, fix string) error {
	return &fault.Fault{Code: codeNoSave, Class: fault.Usage, Op: "restore the cluster", Err: err, Fix: fix}
}

// alone calls do for a run as long as that has the lock, while no node uses the volume.
func (s *State) alone(ctx context.Context, run string, do func(context.Context, *state.Work) error) error {
	return s.under(ctx, run, func(ctx context.Context, w *state.Work) error {
		release, err := nodedata.Alone(ctx, s.place.Node)
		if err != nil {
			return err
		}
		defer release()
		return do(ctx, w)
	})
}
