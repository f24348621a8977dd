package conductor

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/contract"
)

const backupsFile = "/slipway/backups.json"

// Backups are the deployment's backups, the oldest first. Of a deployment of which nothing is
// known the error is a fault of class Usage.
func (r *Records) Backups(ctx context.Context) ([]contract.BackupSummary, error) {
	var out []contract.BackupSummary
	err := r.query(ctx, []string{"slipway", "state", "backups", backupsFile}, backupsFile, &out)
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
	out := &contract.Backup{}
	if err := r.query(ctx, []string{"slipway", "state", "backups", backupsFile, id}, backupsFile, out); err != nil {
		return nil, nil, err
	}
	const at = "/slipway/release.zip"
	done, err := r.file(ctx, at, "slipway", "state", "archive", id)
	if err != nil {
		return nil, nil, err
	}
	archive, err := base64.StdEncoding.DecodeString(string(done))
	if err != nil {
		return nil, nil, fmt.Errorf("decode the release of backup %s: %w", id, err)
	}
	files, err := bounded.Unpack(archive)
	if err != nil {
		return nil, nil, fmt.Errorf("unpack the release of backup %s: %w", id, err)
	}
	return out, files, nil
}
