package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const planLimit = time.Minute

// Plan finds out for p what the step that req names would change, and changes nothing, the
// deployment's state included. It returns the output that the steps after it are planned with:
// where a step only tries something out, or its output is only known after it has run, that of its
// last success. later says what the plan of the step could not look at.
func Plan(ctx context.Context, reg *Registry, req contract.Request, dirs Dirs, p *plan.Plan) (out json.RawMessage, later string, err error) {
	code, err := find(reg, req)
	if err != nil {
		return nil, "", badRequest("request", err)
	}
	env, err := environment(reg, req, dirs.OrDefault(), io.Discard, io.Discard)
	defer func() { err = errors.Join(err, env.close()) }()
	if err != nil {
		return nil, "", badState("reach the cluster", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, planLimit, errTimeUp)
	defer cancel()
	records, err := openRecords(ctx, env, req)
	if err != nil {
		return nil, "", env.classify(ctx, planLimit, err)
	}
	if code.plan == nil {
		out, err = records.last(ctx, code)
		return out, "", err
	}
	out, err = guarded(ctx, verifyGrace, env, func() (json.RawMessage, error) { return code.plan(ctx, env.Planned(p.Of(env.ID)), req.Input) })
	switch {
	case errors.Is(err, plan.ErrLater):
		later = env.Clean(err.Error())
		out, err = records.last(ctx, code)
		return out, later, err
	case err != nil:
		var all []error
		for _, err := range joined(err) {
			all = append(all, env.classify(ctx, planLimit, err).Map(env.Clean))
		}
		return nil, "", errors.Join(all...)
	}
	return out, "", nil
}

// joined are the errors that err joins, each with a remedy of its own; err, if it joins none.
func joined(err error) []error {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, err := range several.Unwrap() {
		out = append(out, joined(err)...)
	}
	return out
}

// last is the output of the step's last attempt, if it succeeded.
func (b *stepRecords) last(ctx context.Context, code untypedStep) (json.RawMessage, error) {
	last, err := b.ledger.Last(ctx, b.req.Stage, b.req.Step)
	_, damaged := errors.AsType[*store.RecordError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist), damaged:
		return code.none, nil
	case err != nil:
		return nil, fmt.Errorf("read the last result of %s: %w", b.req.ID(), err)
	case last.Status != pipeline.Succeeded || len(last.Output) == 0:
		return code.none, nil
	}
	return last.Output, nil
}
