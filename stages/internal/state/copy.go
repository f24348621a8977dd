package state

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/secret"
	"github.com/slipway-sh/slipway/pipeline/store/versions"
	"github.com/slipway-sh/slipway/stages/contract"
)

// What of a state is not in a copy: the lock, which is of the place and not of the deployment,
// and the journal, without which a run runs all its steps.
const journalDir = "journal"

// The limits of a copy.
const (
	wholeRuns    = 20        // of these newest ones it has everything, of others the record
	mostOfBackup = 256 << 20 // bytes
)

// backupsDir has the backups of the platform's data, see package backup.
const backupsDir = "backups"

// Copy writes a copy of the deployment's state for a run to the folder out, which it makes;
// have identifies the backups that whoever asks has already. What c says of the state is
// completed. Of a deployment without an identity no copy is written. Where the state is in a bucket, which no engine removes, only the key is copied
// that was made for its secrets.
func (p Place) Copy(ctx context.Context, w *Work, out, have string, c contract.Copy) error {
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("make a folder for the copy of the state: %w", err)
	}
	identity, err := Identity(ctx, w.Store)
	if err != nil {
		return err
	}
	if identity == nil { // of an earlier version: its next install makes one
		return nil
	}
	c.Identity, c.Generation, c.At, c.Files = *identity, w.Generation, time.Now().UTC(), map[string]contract.CopiedFile{}
	if p.Remote() {
		err = p.copyKey(out, &c)
	} else {
		err = p.copyState(ctx, w.Store, out, have, &c)
	}
	if err != nil {
		return fmt.Errorf("copy the deployment's state: %w", err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode what the copy says of itself: %w", err)
	}
	return atomicfile.Write(filepath.Join(out, contract.CopyFile), text, 0o600)
}

func (p Place) copyKey(out string, c *contract.Copy) error {
	text, err := os.ReadFile(filepath.Join(p.Volume, filepath.FromSlash(secret.KeyFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	c.Files[contract.CopyIdentity] = contract.CopiedFile{Name: path.Base(contract.CopyIdentity), SHA256: hex.EncodeToString(sum[:])}
	return atomicfile.Write(filepath.Join(out, path.Base(contract.CopyIdentity)), text, 0o600)
}

func (p Place) copyState(ctx context.Context, s *store.Store, out, have string, c *contract.Copy) error {
	keys, err := s.List(ctx, "")
	if err != nil {
		return err
	}
	var values, backups []string
	newest, whole := newestOf(keys), lastRuns(keys)
	for _, key := range keys {
		first, _, _ := strings.Cut(key, "/")
		switch {
		case first == lockDir, first == journalDir, first == identityDir, superseded(key, newest):
		case first == backupsDir:
			backups = append(backups, key)
		case first != runsDir || isRecord(key) || whole[runOf(key)]:
			values = append(values, key)
		}
	}
	if err := p.archive(ctx, s, out, contract.CopyStateFile, values, c); err != nil {
		return err
	}
	backups, c.Backups, err = p.backups(backups, c)
	if err != nil || c.Backups == "" || c.Backups == have {
		return err
	}
	return p.archive(ctx, s, out, contract.CopyBackupsFile, backups, c)
}

// newestOf are the highest generations of values with versions, by what their keys are besides.
func newestOf(keys []string) map[string]int64 {
	newest := map[string]int64{}
	for _, key := range keys {
		if g, ok := versions.Generation(key); ok {
			newest[unversioned(key)] = max(newest[unversioned(key)], g)
		}
	}
	return newest
}

// superseded reports whether a key is that of a version which a later one has replaced.
func superseded(key string, newest map[string]int64) bool {
	g, ok := versions.Generation(key)
	return ok && g < newest[unversioned(key)]
}

// unversioned is the key of a version as one of generation 0, below which every run's is that
// restores it, and itself for other keys.
func unversioned(key string) string {
	if _, ok := versions.Generation(key); !ok {
		return key
	}
	dir, name := path.Split(key)
	_, suffix, found := strings.Cut(name, ".")
	if found {
		suffix = "." + suffix
	}
	return versions.Value{Prefix: dir, Suffix: suffix}.Key(0)
}

// lastRuns are the newest runs, of which a copy has everything.
func lastRuns(keys []string) map[string]bool {
	var ids []string
	for _, key := range keys {
		if id := runOf(key); id != "" {
			ids = append(ids, id)
		}
	}
	ids = slices.Compact(ids)
	out := map[string]bool{}
	for _, id := range ids[max(0, len(ids)-wholeRuns):] {
		out[id] = true
	}
	return out
}

// runOf is the id of the run to which a key belongs; empty if that is none.
func runOf(key string) string {
	in, ok := strings.CutPrefix(key, runsDir+"/")
	id, _, inRun := strings.Cut(in, "/")
	if !ok || !inRun {
		return ""
	}
	return id
}

// isRecord reports whether a key is that of what a copy has of every run.
func isRecord(key string) bool {
	name := path.Base(key)
	return runOf(key) == "" || strings.Count(key, "/") == 2 && (name == report.RecordFile || name == "config.yaml")
}

// backups are those of some keys that a copy has, the newest first, and what identifies them.
func (p Place) backups(keys []string, c *contract.Copy) (in []string, identity string, err error) {
	sum, total := sha256.New(), int64(0)
	for _, key := range slices.Backward(keys) {
		info, err := os.Stat(filepath.Join(p.Volume, filepath.FromSlash(key)))
		if err != nil {
			return nil, "", err
		}
		if total += info.Size(); total > mostOfBackup {
			total -= info.Size()
			c.LeftOut = append(c.LeftOut, key)
			continue
		}
		in = append(in, key)
		fmt.Fprintf(sum, "%s %d\n", key, info.Size())
	}
	if len(in) == 0 {
		return nil, "", nil
	}
	return in, hex.EncodeToString(sum.Sum(nil)), nil
}

// archive writes the values of some keys to a file of the copy.
func (p Place) archive(ctx context.Context, s *store.Store, out, name string, keys []string, c *contract.Copy) (err error) {
	f, err := os.OpenFile(filepath.Join(out, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	z, err := zstd.NewWriter(io.MultiWriter(f, sum), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, key := range keys {
		data, err := s.Get(ctx, key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // it was removed meanwhile
		case errors.Is(err, &fault.Fault{Code: store.CodeDamaged}):
			c.LeftOut = append(c.LeftOut, key)
			continue
		case err != nil:
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: unversioned(key), Mode: 0o600, Size: int64(len(data)), Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	err = errors.Join(t.Close(), z.Close())
	c.Files[name] = contract.CopiedFile{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return err
}

// Restore makes the state from the copy in a folder, unless there is one, and returns the
// identity of the deployment. It may be done again after it was interrupted.
func (p Place) Restore(ctx context.Context, w *Work, dir string) (*contract.Identity, error) {
	there, err := Identity(ctx, w.Store)
	if err != nil || there != nil {
		return there, err
	}
	text, err := os.ReadFile(filepath.Join(dir, contract.CopyFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCopy, err)
	}
	var c contract.Copy
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%w: decode %s: %w", ErrBadCopy, contract.CopyFile, err)
	}
	var files []string
	for _, name := range []string{contract.CopyStateFile, contract.CopyBackupsFile} {
		file, ok := c.Files[name]
		if !ok {
			continue
		}
		path := filepath.Join(dir, filepath.Base(file.Name))
		if err := intact(path, file.SHA256); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBadCopy, file.Name, err)
		}
		files = append(files, path)
	}
	if err := w.Store.Put(ctx, restoring, nil); err != nil {
		return nil, err
	}
	for _, path := range files {
		if err := extract(ctx, w.Store, path); err != nil {
			return nil, fmt.Errorf("restore the state from %s: %w", filepath.Base(path), err)
		}
	}
	c.Restored++
	made, err := putIdentity(ctx, w.Store, w.Generation, c.Identity) // until then it is not restored
	if err != nil {
		return nil, err
	}
	return made, w.Store.Delete(ctx, restoring)
}

// ErrBadCopy is the cause of a restore that has done nothing because the copy cannot be used.
var ErrBadCopy = errors.New("the copy of the state is not as it was written")

// restoring is there while the state is restored.
const restoring = "restoring"

// Restoring reports whether a restore of the state was begun and has not ended.
func Restoring(ctx context.Context, s *store.Store) (bool, error) {
	_, err := s.Get(ctx, restoring)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// intact returns an error unless a file has that digest.
func intact(file, want string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return errors.New("its digest is another")
	}
	return nil
}

// extract puts the values of an archive into s.
func extract(ctx context.Context, s *store.Store, file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(h.Name, "/")
		if first == lockDir || first == journalDir || h.Size > store.MaxBytes {
			return fmt.Errorf("a copy has no value %s of %d bytes", h.Name, h.Size)
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		if err := s.Put(ctx, h.Name, data); err != nil {
			return err
		}
	}
}
