package preorchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store/secret"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// Names of what is kept in the deployment's vault.
const (
	keptSecrets      = "generated"
	keptCertificates = "certificates"
)

// kept is what a step generates for a cluster that may be lost with its volume, as it is in
// the deployment's state: another cluster gets the same values. One that has had them gets
// new ones for those that somebody has deleted there. A nil one keeps nothing.
type kept struct {
	cluster string // UID of the one that the step works on
	was     keptRecord
	now     map[string]keptValue
	put     func(context.Context, keptRecord) error
}

// keptRecord is what is stored.
type keptRecord struct {
	Cluster string               `json:"cluster"` // UID of the one that has all values
	Values  map[string]keptValue `json:"values"`  // by "namespace/name/key"
}

// keptValue is a value and the version of the release that brought it, if one did.
type keptValue struct {
	Value   []byte `json:"value"`
	Rotated string `json:"rotated,omitempty"`
}

func (v keptValue) same(o keptValue) bool {
	return v.Rotated == o.Rotated && bytes.Equal(v.Value, o.Value)
}

// openKept reads what is kept under a name, unless the cluster is not Slipway's.
func openKept(ctx context.Context, env *step.Env, c *kube.Client, name string) (*kept, error) {
	if env.Existing {
		return nil, nil
	}
	uid, err := c.UID(ctx)
	if err != nil {
		return nil, err
	}
	s, err := env.Store(ctx)
	if err != nil {
		return nil, err
	}
	k := &kept{cluster: uid, now: map[string]keptValue{}}
	k.put = func(ctx context.Context, r keptRecord) error {
		text, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode what is generated: %w", err)
		}
		vault, err := env.Place.Vault(ctx, s)
		if err != nil {
			return err
		}
		return vault.Put(ctx, env.Generation(), name, redact.New(text))
	}
	names, err := secret.Open(s, nil).Names(ctx)
	if err != nil || !slices.Contains(names, name) {
		return k, err
	}
	vault, err := env.Place.Vault(ctx, s)
	if err != nil {
		return nil, err
	}
	text, err := vault.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text.Reveal(), &k.was); err != nil {
		return nil, fmt.Errorf("decode what was generated: %w", err)
	}
	return k, nil
}

// restore is the value of a key that another cluster has had.
func (k *kept) restore(key string) (keptValue, bool) {
	if k == nil || k.was.Cluster == k.cluster {
		return keptValue{}, false
	}
	v, ok := k.was.Values[key]
	return v, ok
}

// note has a value kept that the cluster has or gets.
func (k *kept) note(key string, v keptValue) {
	if k != nil {
		k.now[key] = v
	}
}

// write stores what was noted. It comes before the values are in the cluster, and done after.
func (k *kept) write(ctx context.Context) error {
	if k == nil || maps.EqualFunc(k.was.Values, k.now, keptValue.same) {
		return nil
	}
	return k.store(ctx, keptRecord{k.was.Cluster, k.now})
}

// done notes that the cluster has all values.
func (k *kept) done(ctx context.Context) error {
	if k == nil || k.was.Cluster == k.cluster {
		return nil
	}
	return k.store(ctx, keptRecord{k.cluster, k.now})
}

func (k *kept) store(ctx context.Context, r keptRecord) error {
	if dryrun.On(ctx) {
		return dryrun.Pass(ctx, "keep what is generated in the deployment's state")
	}
	if err := k.put(ctx, r); err != nil {
		return err
	}
	k.was = r
	return nil
}
