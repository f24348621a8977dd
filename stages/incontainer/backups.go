package incontainer

import (
	"context"
	"encoding/base64"
	"os"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
)

// Backups writes all backups of the deployment, or one of them as a whole, to file.
func (s *State) Backups(ctx context.Context, file, id string) error {
	repo, err := backup.Open(ctx, s.place, s.store)
	if err != nil {
		return err
	}
	if id == "" {
		all, err := repo.List(ctx)
		return writeJSON(file, all, err)
	}
	b, err := repo.Get(ctx, id)
	return writeJSON(file, b, err)
}

// Archive writes the release that was installed when a backup was made to file: a zip archive
// in base64, for the engine hands on nothing but text.
func (s *State) Archive(ctx context.Context, file, id string) error {
	repo, err := backup.Open(ctx, s.place, s.store)
	if err != nil {
		return err
	}
	b, err := repo.Get(ctx, id)
	if err != nil {
		return err
	}
	if b.Reason != contract.ForUpgrade || b.Release == nil {
		return backup.DataOnly(id)
	}
	data, err := repo.Archive(ctx, backup.ReleaseKey(id), *b.Release)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(data)), 0o644)
}
