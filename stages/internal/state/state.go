// Package state works on a deployment's state from inside a container: in the
// state volume, or in the bucket that the configuration names. `slipway state …`,
// which only the conductor calls, and the steps use it.
package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Names in the state.
const (
	runsDir    = "runs"
	latestDir  = "latest"  // id of the last run
	lockDir    = "lock"    // see package pipeline/lock
	secretsDir = "secrets" // never leaves the state
	unsavedDir = "unsaved" // states of Terraform that are not the deployment's
	runtime    = "state.yaml"
)

func latest() store.Versions {
	return store.Versions{Prefix: latestDir + "/"}
}

// transfers is how many values are read or written at the same time.
const transfers = 8

// ErrNoRun says that there is no record of a run.
var ErrNoRun = errors.New("no run was recorded")

// check refuses what is not the name of a run's directory, "..", for one.
func check(run string) error {
	if run == "" || run != filepath.Base(run) || strings.HasPrefix(run, ".") {
		return fmt.Errorf("run id %q is not a file name", run)
	}
	return nil
}

// Keep writes files of a run's directory, by name ("hooks/backup.txt"). Each file is
// replaced atomically.
func Keep(ctx context.Context, s *store.Store, run string, files map[string][]byte) error {
	if err := check(run); err != nil {
		return err
	}
	for name := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is no file of a run", name)
		}
	}
	var group errgroup.Group
	group.SetLimit(transfers)
	for name, data := range files {
		group.Go(func() error { return s.Put(ctx, path.Join(runsDir, run, name), data) })
	}
	return group.Wait()
}

// PutLatest makes a run, which has the lock of a generation, the last one.
func PutLatest(ctx context.Context, s *store.Store, generation int64, run string) error {
	if err := check(run); err != nil {
		return err
	}
	return latest().Put(ctx, s, generation, []byte(run+"\n"))
}

// File is a file of a run's directory; without it the error is fs.ErrNotExist.
func File(ctx context.Context, s *store.Store, run, name string) ([]byte, error) {
	if err := check(run); err != nil {
		return nil, err
	}
	return s.Get(ctx, runKey(run, name))
}

func runKey(run, name string) string { return path.Join(runsDir, run, name) }

// Latest is the id of the last run, or ErrNoRun.
func Latest(ctx context.Context, s *store.Store) (string, error) {
	b, generation, err := latest().Newest(ctx, s)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoRun
	}
	if err != nil {
		return "", err
	}
	run := string(bytes.TrimSpace(b))
	if err := check(run); err != nil {
		return "", s.Damaged(latest().Key(generation), err)
	}
	return run, nil
}

// Report copies a run's directory and the runtime state to out, which must not
// hold anything. An empty run means the last one. It returns the run's id. In the
// place of a file that is too large for a store it says so.
func Report(ctx context.Context, s *store.Store, run, out string) (string, error) {
	if run == "" {
		var err error
		if run, err = Latest(ctx, s); err != nil {
			return "", err
		}
	}
	if err := check(run); err != nil {
		return "", err
	}
	prefix := runsDir + "/" + run + "/"
	keys, err := s.List(ctx, prefix)
	if err != nil {
		return "", fmt.Errorf("copy run %s: %w", run, err)
	}
	if len(keys) == 0 {
		return "", fmt.Errorf("run %s: %w", run, ErrNoRun)
	}
	var group errgroup.Group
	group.SetLimit(transfers)
	for _, key := range keys {
		name := strings.TrimPrefix(key, prefix)
		if slices.Contains(strings.Split(name, "/"), secretsDir) {
			continue
		}
		group.Go(func() error {
			data, err := s.Get(ctx, key)
			return export(filepath.Join(out, filepath.FromSlash(name)), data, err)
		})
	}
	group.Go(func() error {
		data, _, err := runtimes().Newest(ctx, s)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return export(filepath.Join(out, runtime), data, err)
	})
	if err := group.Wait(); err != nil {
		return "", fmt.Errorf("copy run %s: %w", run, err)
	}
	return run, nil
}

// export writes a value, which was read with an error, to a file.
func export(file string, data []byte, err error) error {
	if errors.Is(err, &fault.Fault{Code: store.CodeDamaged}) {
		data, err = []byte("not copied: "+err.Error()+"\n"), nil
	}
	if err != nil {
		return err
	}
	if ext := filepath.Ext(file); ext != ".json" && ext != ".yaml" { // people read it, whatever somebody put into the state
		data = []byte(redact.Plain(string(data)))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// Runs are the ids of the recorded runs, oldest first.
func Runs(ctx context.Context, s *store.Store) ([]string, error) {
	keys, err := s.List(ctx, runsDir+"/")
	var ids []string
	for _, key := range keys {
		if id, _, inRun := strings.Cut(strings.TrimPrefix(key, runsDir+"/"), "/"); inRun {
			ids = append(ids, id)
		}
	}
	return slices.Compact(ids), err
}

// Publish copies the files of a directory of the volume, which a step has filled,
// to s where that is remote.
func (p Backend) Publish(ctx context.Context, s *store.Store, dir string) error {
	if !p.Remote() {
		return nil
	}
	var group errgroup.Group
	group.SetLimit(transfers)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		key, err := filepath.Rel(p.Volume, file)
		if err != nil {
			return err
		}
		group.Go(func() error {
			data, err := tail(file, store.MaxBytes)
			if err != nil {
				return err
			}
			return s.Put(ctx, filepath.ToSlash(key), data)
		})
		return nil
	})
	return errors.Join(err, group.Wait())
}

// tail is a file, or its end where it is longer than limit.
func tail(file string, limit int64) (data []byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() <= limit {
		return os.ReadFile(file)
	}
	data = make([]byte, limit)
	n, err := f.ReadAt(data, info.Size()-limit)
	note := fmt.Sprintf("… %d bytes left out\n", info.Size()-limit)
	return append([]byte(note), data[min(n, len(note)):n]...), err
}
