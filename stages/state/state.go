// Package state works on a deployment's state volume from inside a container:
// `slipway state …`, which only the conductor calls.
package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names in the state volume.
const (
	runsDir    = "runs"
	latestFile = "latest"  // in runs: id of the last run
	lockDir    = "lock"    // see package pipeline/lock
	secretsDir = "secrets" // never leaves the volume
	runtime    = "state.yaml"
)

// ErrNoRun says that the volume has no record of a run.
var ErrNoRun = errors.New("no run was recorded")

// check refuses what is not the name of a run's directory, "..", for one.
func check(run string) error {
	if run == "" || run != filepath.Base(run) || strings.HasPrefix(run, ".") {
		return fmt.Errorf("run id %q is not a file name", run)
	}
	return nil
}

// Keep writes files of a run's directory, by name ("hooks/backup.txt"), and makes
// it the last run. Each file is replaced atomically.
func Keep(root, run string, files map[string][]byte) error {
	if err := check(run); err != nil {
		return err
	}
	dir := filepath.Join(root, runsDir, run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is no file of a run", name)
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := replace(file, data); err != nil {
			return err
		}
	}
	return replace(filepath.Join(root, runsDir, latestFile), []byte(run+"\n"))
}

// KeepRuntime replaces the deployment's runtime state: what the steps found out,
// without secrets.
func KeepRuntime(root string, data []byte) error { return replace(filepath.Join(root, runtime), data) }

// Latest is the id of the last run, or ErrNoRun.
func Latest(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, runsDir, latestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoRun
	}
	return string(bytes.TrimSpace(b)), err
}

// Report copies a run's directory and the runtime state to out, which must not
// hold anything. An empty run means the last one. It returns the run's id.
func Report(root, run, out string) (string, error) {
	if run == "" {
		var err error
		if run, err = Latest(root); err != nil {
			return "", err
		}
	}
	if err := check(run); err != nil {
		return "", err
	}
	dir := filepath.Join(root, runsDir, run)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("run %s: %w", run, ErrNoRun)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	if err := copyTree(dir, out); err != nil {
		return "", fmt.Errorf("copy run %s: %w", run, err)
	}
	data, err := os.ReadFile(filepath.Join(root, runtime))
	if errors.Is(err, fs.ErrNotExist) {
		return run, nil
	}
	if err != nil {
		return "", err
	}
	return run, os.WriteFile(filepath.Join(out, runtime), data, 0o644)
}

// Runs are the ids of the recorded runs, oldest first.
func Runs(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, runsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// Purge removes everything but the records of the runs and the lock, which the
// caller holds: after a removal nothing may be reused.
func Purge(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != runsDir && e.Name() != lockDir {
			errs = append(errs, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// copyTree copies regular files and directories; nothing named "secrets".
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == secretsDir {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(target, data, 0o644)
		}
		return nil
	})
}

// replace writes a file so that it is there completely or not at all.
func replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
