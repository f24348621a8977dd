package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// identityDir has what tells the deployment from others of the same name.
const identityDir = "deployment"

// identityValue has versions. The first one that a holder of the lock makes or takes over stays;
// one of an earlier holder, which the network has delayed, is below it.
var identityValue = store.Versions{Prefix: identityDir + "/", Suffix: ".json"} //nolint:gochecknoglobals // a constant

// Identity is that of the deployment in s; nil while there is none.
func Identity(ctx context.Context, s *store.Store) (*contract.Identity, error) {
	return newest(ctx, s, identityValue, func(i *contract.Identity) error {
		if i.ID == "" {
			return errors.New("it has no id")
		}
		return nil
	})
}

// MakeIdentity is Identity for the holder of a generation of the lock; it makes one if there is
// none.
func MakeIdentity(ctx context.Context, s *store.Store, generation int64, name string) (*contract.Identity, error) {
	return putIdentity(ctx, s, generation, contract.Identity{ID: strings.ToLower(rand.Text()), Name: name, Created: time.Now().UTC().Truncate(time.Second)})
}

// putIdentity creates i, unless there is one.
func putIdentity(ctx context.Context, s *store.Store, generation int64, i contract.Identity) (*contract.Identity, error) {
	there, err := Identity(ctx, s)
	if err != nil || there != nil {
		return there, err
	}
	data, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	if err := s.Create(ctx, identityValue.Key(generation), data); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}
	return Identity(ctx, s)
}
