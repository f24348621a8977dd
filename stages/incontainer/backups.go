package incontainer

import (
	"context"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
)

// backups are all backups of the deployment.
func (s *State) backups(ctx context.Context) ([]contract.BackupSummary, error) {
	repo, err := backup.Open(ctx, s.place, s.store)
	if err != nil {
		return nil, err
	}
	return repo.List(ctx)
}

// backup is a backup, with the release that was installed when it was made.
func (s *State) backup(ctx context.Context, id string) (*contract.BackupRelease, error) {
	repo, err := backup.Open(ctx, s.place, s.store)
	if err != nil {
		return nil, err
	}
	b, err := repo.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if b.Reason != contract.ForUpgrade || b.Release == nil {
		return nil, backup.DataOnly(id)
	}
	archive, err := repo.Archive(ctx, backup.ReleaseKey(id), *b.Release)
	return &contract.BackupRelease{Backup: b, Archive: archive}, err
}
