package step

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// stepRecords are the lock and the journal in the deployment's store.
type stepRecords struct {
	store  *store.Store
	ledger *journal.Ledger
	req    contract.Request
}

// openRecords opens the deployment's store. If that is a bucket, it also restores the
// kubeconfig from there for a step that uses the cluster.
func openRecords(ctx context.Context, env *Env, req contract.Request) (*stepRecords, error) {
	s, err := env.Own(ctx)
	if err != nil {
		return nil, err
	}
	if env.Backend.Remote() && !req.Locked { // nothing was changed yet
		if err := s.Check(ctx); err != nil {
			return nil, err
		}
	}
	if req.Cluster {
		if err := errors.Join(env.Backend.RestoreKubeconfig(ctx, s), env.RedactSecrets()); err != nil {
			return nil, err
		}
	}
	return &stepRecords{s, journal.On(s, req.Deployment), req}, nil
}

// work fails if the step requires the lock and its run does not hold it. The returned context ends when
// the run loses the lock, unless the step only looks.
func (b *stepRecords) work(ctx context.Context, env *Env) (context.Context, error) {
	switch {
	case !b.req.Locked:
		return ctx, nil
	case b.req.VerifyOnly:
		_, err := lock.New(b.store, lock.Options{}).HeldBy(ctx, b.req.Run)
		return ctx, err
	}
	watched, work, err := env.Backend.Work(ctx, b.store, b.req.Run)
	if err != nil {
		return ctx, err
	}
	env.work, b.ledger = work, b.ledger.Under(work.Generation, work.Store)
	return watched, nil
}

// reuse returns the output of an earlier success that still holds, or why there is none.
func (b *stepRecords) reuse(ctx context.Context, code untypedStep, env *Env) (json.RawMessage, error) {
	if code.verify == nil || b.req.Digests == (journal.Digests{}) {
		return nil, errors.New("the step runs every time")
	}
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	var now json.RawMessage // the output that the check returned
	_, why, err := b.ledger.Resume(ctx, b.req.Stage, b.req.Step, b.req.Digests, func(ctx context.Context, out json.RawMessage) (err error) {
		now, err = guarded(ctx, verifyGrace, env, func() (json.RawMessage, error) { return code.verify(ctx, env, b.req.Input, out) })
		if err == nil && env.secrets.In(now) {
			err = errSecret
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, errors.New(why)
	}
	env.Logger.Info("earlier result still holds")
	return now, nil
}
