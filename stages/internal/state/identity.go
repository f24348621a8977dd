package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// identityFile tells the deployment from others of the same name.
const identityFile = "deployment.json"

// Identity is that of the deployment in s; nil while there is none.
func Identity(ctx context.Context, s *store.Store) (*contract.Identity, error) {
	data, err := s.Get(ctx, identityFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var i contract.Identity
	if err := json.Unmarshal(data, &i); err != nil {
		return nil, fmt.Errorf("decode %s: %w", identityFile, err)
	}
	return &i, nil
}

// MakeIdentity is Identity; it makes one if there is none.
func MakeIdentity(ctx context.Context, s *store.Store, name string) (*contract.Identity, error) {
	there, err := Identity(ctx, s)
	if err != nil || there != nil {
		return there, err
	}
	return putIdentity(ctx, s, contract.Identity{ID: strings.ToLower(rand.Text()), Name: name, Created: time.Now().UTC().Truncate(time.Second)})
}

// TakeIdentity has the deployment be the one with an identity, if it has none; created is when
// that is known to have been there.
func TakeIdentity(ctx context.Context, s *store.Store, id, name string, created time.Time) error {
	_, err := putIdentity(ctx, s, contract.Identity{ID: id, Name: name, Created: created})
	return err
}

// putIdentity creates i, unless there is one.
func putIdentity(ctx context.Context, s *store.Store, i contract.Identity) (*contract.Identity, error) {
	data, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	if err := s.Create(ctx, identityFile, data); errors.Is(err, store.ErrExists) {
		return Identity(ctx, s)
	} else if err != nil {
		return nil, err
	}
	return &i, nil
}
