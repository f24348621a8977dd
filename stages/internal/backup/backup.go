// Package backup keeps backups in a deployment's state: dumps of data, in pieces with a
// digest each, releases, and configurations. In a bucket all of it is encrypted with the key
// of the deployment's secrets.
package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// The codes of this package's faults.
const (
	// CodeDamaged: a backup in the deployment's state is incomplete or was altered.
	CodeDamaged fault.Code = "BAK-004"
)

// Where backups and the installed release are in the state, and what they are sealed as.
const (
	dir           = "backups/"
	manifest      = "/backup.json"
	InstalledDir  = "installed/"                  // has nothing where no release was kept
	installedFile = InstalledDir + "release.json" // the name of what installedVersions are, by which it is encrypted
	kind          = "backup"
	installedKind = "installed"
	version       = 1
)

// Repository is the part of a deployment's state with the backups.
type Repository struct {
	store *store.Store
	vault *store.Vault // nil: nothing is encrypted, for nothing leaves the engine
}

// Open returns the repository in a store.
func Open(ctx context.Context, backend state.Backend, s *store.Store) (*Repository, error) {
	r := &Repository{store: s}
	if !backend.Remote() {
		return r, nil
	}
	var err error
	r.vault, err = backend.Vault(ctx, s)
	return r, err
}

// installedVersions are those of which release is installed.
func installedVersions() store.Versions {
	return store.Versions{Prefix: InstalledDir, Suffix: ".json"}
}

func (r *Repository) put(ctx context.Context, key string, data []byte) error {
	data, err := r.encrypt(key, data)
	if err != nil {
		return err
	}
	return r.store.Put(ctx, key, data)
}

func (r *Repository) get(ctx context.Context, key string) ([]byte, error) {
	data, err := r.store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return r.decrypt(key, data)
}

func (r *Repository) encrypt(name string, data []byte) ([]byte, error) {
	if r.vault == nil {
		return data, nil
	}
	return r.vault.Encrypt(name, data)
}

func (r *Repository) decrypt(name string, data []byte) ([]byte, error) {
	if r.vault == nil {
		return data, nil
	}
	data, err := r.vault.Decrypt(name, data)
	if errors.Is(err, &fault.Fault{Code: store.CodeDamaged}) {
		return nil, damaged(name, err)
	}
	return data, err
}

// DataKey is where the dump of some data is in a backup.
func DataKey(id, data string) string { return dir + id + "/data/" + data }

// ReleaseKey is where the release that was installed is in a backup.
func ReleaseKey(id string) string { return dir + id + "/release" }

// TargetKey is where the release is to which the platform was brought, by its digest.
func TargetKey(id, digest string) string {
	return dir + id + "/target/" + strings.TrimPrefix(digest, "sha256:")
}

// InstalledKey is where a release that was installed is, by its digest.
func InstalledKey(digest string) string {
	return InstalledDir + strings.TrimPrefix(digest, "sha256:")
}

// Put stores a backup, whose parts are there: from now on it counts.
func (r *Repository) Put(ctx context.Context, b contract.Backup) error {
	data, err := store.Seal(kind, version, b)
	if err != nil {
		return err
	}
	return r.put(ctx, dir+b.ID+manifest, data)
}

// Get returns a backup. Without it the error is contract.CodeNoBackup.
func (r *Repository) Get(ctx context.Context, id string) (contract.Backup, error) {
	var b contract.Backup
	if !validID(id) {
		return b, none("there is no backup " + fmt.Sprintf("%.40q", id))
	}
	key := dir + id + manifest
	data, err := r.get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return b, none("there is no backup " + id)
	} else if err != nil {
		return b, err
	}
	if err := store.Unseal(data, kind, version, &b); err != nil {
		return b, damaged(key, err)
	}
	if b.ID != id {
		return b, damaged(key, fmt.Errorf("it is backup %q", b.ID))
	}
	return b, nil
}

func validID(id string) bool {
	return id != "" && !strings.ContainsAny(id, "/\\") && !strings.HasPrefix(id, ".")
}

func none(what string) error {
	return &fault.Fault{Code: contract.CodeNoBackup, Class: fault.Usage, Op: "find the backup", Err: errors.New(what), Fix: "name one of those that slipway backups lists"}
}

// DataOnly is the fault of who wants to go back to a backup that a rollback has made.
func DataOnly(id string) error { return none("backup " + id + " holds data only") }

// ids are those of all backups, the oldest first, and those of what is left of some that
// were never completed.
func (r *Repository) ids(ctx context.Context) (whole, broken []string, err error) {
	keys, err := r.store.List(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		id, rest, _ := strings.Cut(strings.TrimPrefix(key, dir), "/")
		if "/"+rest == manifest {
			whole = append(whole, id)
		} else {
			broken = append(broken, id)
		}
	}
	slices.Sort(broken)
	broken = slices.DeleteFunc(slices.Compact(broken), func(id string) bool { return slices.Contains(whole, id) })
	return whole, broken, nil
}

// List returns all backups, the oldest first. A backup that cannot be read has a problem.
func (r *Repository) List(ctx context.Context) ([]contract.BackupSummary, error) {
	whole, _, err := r.ids(ctx)
	if err != nil {
		return nil, err
	}
	out := []contract.BackupSummary{}
	for _, id := range whole {
		b, err := r.Get(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, &fault.Fault{Code: contract.CodeNoBackup}): // it was removed meanwhile
		case err != nil:
			out = append(out, contract.BackupSummary{ID: id, Data: []contract.DataSummary{}, Problem: err.Error()})
		default:
			out = append(out, b.Summary())
		}
	}
	return out, nil
}

// Retain removes the oldest backups of a reason until n are left; those of the ids in needed
// stay.
func (r *Repository) Retain(ctx context.Context, n int, needed ...string) (removed []string, err error) {
	all, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	kept := map[string]int{}
	for _, b := range slices.Backward(all) {
		if b.Problem != "" { // it is for people to look at
			continue
		}
		if kept[b.Reason]++; kept[b.Reason] <= n || slices.Contains(needed, b.ID) {
			continue
		}
		if err := r.Remove(ctx, b.ID); err != nil {
			return removed, err
		}
		removed = append(removed, b.ID)
	}
	return removed, nil
}

// Sweep removes what is left of backups that were never completed, except the run's own.
func (r *Repository) Sweep(ctx context.Context, run string) error {
	_, broken, err := r.ids(ctx)
	if err != nil {
		return err
	}
	for _, id := range broken {
		if id == run {
			continue
		}
		if err := r.Clear(ctx, dir+id); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a backup, first what makes it count.
func (r *Repository) Remove(ctx context.Context, id string) error {
	if err := r.store.Delete(ctx, dir+id+manifest); err != nil {
		return err
	}
	return r.Clear(ctx, dir+id)
}

// Clear removes everything below a key.
func (r *Repository) Clear(ctx context.Context, key string) error {
	keys, err := r.store.List(ctx, key+"/")
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := r.store.Delete(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// Installed is the release that was installed last; nil if none was kept, or only in a form
// that cannot be read here.
func (r *Repository) Installed(ctx context.Context) (*contract.Installed, error) {
	data, _, err := installedVersions().Newest(ctx, r.store)
	if err == nil {
		data, err = r.decrypt(installedFile, data)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, &fault.Fault{Code: store.CodeBadKey}) || errors.Is(err, &fault.Fault{Code: CodeDamaged}) {
		return nil, nil // the next install writes it anew, with the key that it has
	} else if err != nil {
		return nil, err
	}
	out := &contract.Installed{}
	if err := store.Unseal(data, installedKind, version, out); err != nil {
		return nil, nil //nolint:nilerr // the next install writes it anew
	}
	return out, nil
}

// Holds reports whether the release that is kept is this one, with this configuration.
func Holds(kept *contract.Installed, want contract.Installed) bool {
	return kept != nil && kept.Platform == want.Platform && kept.Version == want.Version && kept.Digest == want.Digest && bytes.Equal(kept.Config, want.Config)
}

// KeepInstalled keeps the files of the release that was installed, and its configuration, in the
// place of the one that was kept before (nil: none), for who has the lock of a generation.
func (r *Repository) KeepInstalled(ctx context.Context, generation int64, before *contract.Installed, in contract.Installed, files fs.FS) (err error) {
	same := before != nil && before.Digest == in.Digest
	if same { // it is there, and a backup may be copied from it
		in.Release = before.Release
	} else if in.Release, err = r.Pack(ctx, InstalledKey(in.Digest), files); err != nil {
		return err
	}
	data, err := store.Seal(installedKind, version, in)
	if err == nil {
		data, err = r.encrypt(installedFile, data)
	}
	if err == nil {
		err = installedVersions().Put(ctx, r.store, generation, data)
	}
	if err != nil || same || before == nil {
		return err
	}
	return r.Clear(ctx, InstalledKey(before.Digest))
}
