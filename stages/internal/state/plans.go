package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

const plansDir = "plans"

// plansKept is how many plans of a deployment are kept: the newest ones.
const plansKept = 20

// ErrNoPlan says that there is no plan of a digest.
var ErrNoPlan = errors.New("no such plan is kept")

// ErrOtherPlan says that what is stored under a digest is not the plan of that digest.
var ErrOtherPlan = errors.New("another plan is in its place")

// PutPlan keeps a plan under an id that sorts by time, in place of an earlier one of the same digest,
// and forgets the oldest ones. No lock is needed.
func PutPlan(ctx context.Context, s *store.Store, id string, p *contract.Plan) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	same := "." + hexOf(p.Digest) + ".json"
	key := plansDir + "/" + id + same
	if err := s.Put(ctx, key, text); err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	keys, err := s.List(ctx, plansDir+"/")
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	slices.Sort(keys)
	left := plansKept
	for _, k := range slices.Backward(keys) {
		if k == key || left > 0 && !strings.HasSuffix(k, same) {
			left--
		} else if err := s.Delete(ctx, k); err != nil {
			return fmt.Errorf("forget an older plan: %w", err)
		}
	}
	return nil
}

// Plan is the plan of a digest, or ErrNoPlan. The digest is made again from what is stored: whoever writes the state can put another plan in its
// place. The error is ErrOtherPlan if only such plans are there.
func Plan(ctx context.Context, s *store.Store, digest string) (*contract.Plan, error) {
	keys, err := s.List(ctx, plansDir+"/")
	if err != nil {
		return nil, fmt.Errorf("look for the plan: %w", err)
	}
	none := ErrNoPlan
	for _, key := range keys {
		if !strings.HasSuffix(key, "."+hexOf(digest)+".json") {
			continue
		}
		text, err := s.Get(ctx, key)
		if errors.Is(err, fs.ErrNotExist) { // it was forgotten meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the plan: %w", err)
		}
		out := &contract.Plan{}
		err = json.Unmarshal(text, out)
		if err == nil {
			err = out.Seal()
		}
		if err == nil && out.Digest == digest {
			return out, nil
		}
		if err == nil {
			err = errors.New("its digest is " + out.Digest)
		}
		none = fmt.Errorf("%s in %s: %w: %w", key, s.Location(), ErrOtherPlan, err)
	}
	return nil, none
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }
