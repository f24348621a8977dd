package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

const plansDir = "plans"

// noDeployment stands for the deployment while there is none.
const noDeployment = "none"

// plansKept is how many plans of a deployment are kept: the newest ones.
const plansKept = 20

// ErrNoPlan says that there is no plan of a digest.
var ErrNoPlan = errors.New("no such plan is kept")

// PutPlan keeps a plan of the deployment under an id that sorts by time, in place of an earlier
// one of the same digest, and forgets the oldest ones. No lock is needed: what was planned for a
// deployment that somebody has destroyed meanwhile touches nothing of the next one of its name.
// The deployment is nil where there is none; such plans are those of all who make one.
func PutPlan(ctx context.Context, s *store.Store, deployment *contract.Identity, id string, p *contract.Preview) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	dir := plansDir + "/" + noDeployment + "/"
	if deployment != nil {
		dir = plansDir + "/" + deployment.ID + "/"
	}
	key := dir + id + "." + hexOf(p.Digest) + ".json"
	if err := s.Put(ctx, key, text); err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	keys, err := s.List(ctx, dir)
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	slices.Sort(keys)
	var others []string
	for _, k := range keys {
		switch {
		case k == key:
		case strings.HasSuffix(k, "."+hexOf(p.Digest)+".json"):
			if err := s.Delete(ctx, k); err != nil {
				return fmt.Errorf("forget an older plan: %w", err)
			}
		default:
			others = append(others, k)
		}
	}
	for len(others) >= plansKept {
		if err := s.Delete(ctx, others[0]); err != nil {
			return fmt.Errorf("forget an older plan: %w", err)
		}
		others = others[1:]
	}
	return nil
}

// Plan is the plan of a digest, whichever deployment of this name it was made for, or ErrNoPlan.
func Plan(ctx context.Context, s *store.Store, digest string) (*contract.Preview, error) {
	keys, err := s.List(ctx, plansDir+"/")
	if err != nil {
		return nil, fmt.Errorf("look for the plan: %w", err)
	}
	at := slices.IndexFunc(keys, func(k string) bool { return strings.HasSuffix(k, "."+hexOf(digest)+".json") })
	if at < 0 {
		return nil, ErrNoPlan
	}
	text, err := s.Get(ctx, keys[at])
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	out := &contract.Preview{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return out, nil
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }
