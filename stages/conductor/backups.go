package conductor

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Backups are the deployment's backups, the oldest first. Of a deployment of which nothing is
// known the error is a fault of class Usage.
func (r *Records) Backups(ctx context.Context) ([]contract.BackupSummary, error) {
	var out []contract.BackupSummary
	err := r.ask(ctx, "backups", contract.StateRequest{}, &out)
	if err != nil || len(out) > 0 {
		return out, err
	}
	const what = "list the backups"
	s, err := r.stored(ctx)
	switch {
	case err != nil:
	case s.Record == nil && !s.Cluster:
		err = r.notThere(what)
	}
	return out, err
}

// Backup is one of them, and the files of the release that was installed when it was made.
func (r *Records) Backup(ctx context.Context, id string) (*contract.Backup, fs.FS, error) {
	var out contract.BackupRelease
	if err := r.ask(ctx, "backup", contract.StateRequest{ID: id}, &out); err != nil {
		return nil, nil, err
	}
	files, err := bounded.Unpack(out.Archive)
	if err != nil {
		return nil, nil, fmt.Errorf("unpack the release of backup %s: %w", id, err)
	}
	return &out.Backup, files, nil
}
