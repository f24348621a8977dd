// Package build is what the programs that build something share: a store of results, and what they
// print while they work.
//
// The store keeps results by the digest of their inputs, outside the checkout, so that a build whose
// inputs did not change is never repeated.
//
// A result is a folder. It is built beside its place and renamed into it when
// it is complete and on disk: a builder that is killed leaves nothing that
// looks finished. Any number of processes may use one store; two that want the
// same result wait for each other.
package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// StoreRoot is the default folder of the store: $SLIPWAY_CACHE, else
// $XDG_CACHE_HOME/slipway, else ~/.cache/slipway.
func StoreRoot() (string, error) {
	if dir := os.Getenv("SLIPWAY_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "slipway"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(home, ".cache", "slipway"), nil
}

// Store is a folder of build results.
type Store struct {
	root string

	// Waiting is called once when another process holds the lock of a key that
	// Do was asked for. May be nil.
	Waiting func()
}

// OpenStore makes the store at root ready; an empty root means StoreRoot().
func OpenStore(root string) (*Store, error) {
	if root == "" {
		var err error
		if root, err = StoreRoot(); err != nil {
			return nil, err
		}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open the build store: %w", err)
	}
	for _, dir := range []string{"objects", "locks"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, fmt.Errorf("open the build store: %w", err)
		}
	}
	return &Store{root: root}, nil
}

// Path is the store's root folder, absolute.
func (s *Store) Path() string { return s.root }

// Lookup is the folder of a stored result.
func (s *Store) Lookup(key Key) (dir string, ok bool) {
	dir = s.dir(key)
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

func (s *Store) dir(key Key) string { return filepath.Join(s.root, "objects", key.Name, key.Digest) }

// Do returns the folder of the result for key, and whether the store had it.
// If it was not, build fills an empty folder, which becomes the result when
// build returns nil. The folder is read-only by convention: nobody may change
// it afterwards. When build fails, its error is returned as it is and the
// unfinished folder is removed.
func (s *Store) Do(ctx context.Context, key Key, build func(ctx context.Context, dir string) error) (dir string, hit bool, err error) {
	if dir, ok := s.Lookup(key); ok {
		return dir, true, nil
	}
	release, err := s.Lock(ctx, key)
	if err != nil {
		return "", false, err
	}
	defer release()
	if dir, ok := s.Lookup(key); ok {
		return dir, true, nil
	}
	dir = s.dir(key)
	tmp := filepath.Join(filepath.Dir(dir), ".building-"+key.Digest)
	// Its builder is dead: we hold the lock.
	if err := os.RemoveAll(tmp); err != nil {
		return "", false, fmt.Errorf("clear an unfinished build of %s: %w", key, err)
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return "", false, fmt.Errorf("build %s: %w", key, err)
	}
	if err := build(ctx, tmp); err != nil {
		return "", false, errors.Join(err, os.RemoveAll(tmp))
	}
	if err := context.Cause(ctx); err != nil {
		return "", false, errors.Join(err, os.RemoveAll(tmp))
	}
	syscall.Sync() // before it has its name
	if err := os.Rename(tmp, dir); err != nil {
		return "", false, fmt.Errorf("keep %s: %w", key, err)
	}
	return dir, false, nil
}
