package state

import (
	"context"
	"path"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// PutUnsaved keeps a state of Terraform that could not be stored as the deployment's, because
// its run had lost the lock, and returns its key.
func PutUnsaved(ctx context.Context, s *store.Store, run string, data []byte) (string, error) {
	if err := check(run); err != nil {
		return "", err
	}
	key := path.Join(unsavedDir, run+".tfstate")
	return key, s.Put(ctx, key, data)
}

// Unsaved are the keys of such states. They stay until somebody deletes them.
func Unsaved(ctx context.Context, s *store.Store) ([]string, error) {
	return s.List(ctx, unsavedDir+"/")
}
