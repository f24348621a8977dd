// Package nodedata saves what a local cluster has on its node's volume to a file, and
// restores it: etcd, keys and certificates, and the volumes of pods. What the node makes again
// at its start, images for one, is left out. The cluster must not run.
package nodedata

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// Version is that of the files that this program writes.
const Version = 1

// Header says what a file holds. It is its first entry.
type Header struct {
	Version    int       `json:"version"`
	Deployment string    `json:"deployment"`
	ID         string    `json:"id,omitempty"` // of the deployment; empty: of an earlier version
	At         time.Time `json:"at"`
}

// Names of the header, of the directories in which a volume is put together and what it had is
// taken away, of what says that this is under way, and of the lock on the volume; the node knows
// the last two (containers/node, wipe.go and lock.go).
const (
	headerFile = "cluster.json"
	unfinished = ".restored"
	replaced   = ".replaced"
	restoring  = ".restoring"
	lockFile   = "lock"
)

// parts are what is saved, if it is there; the first two have to be.
func parts() []string { return []string{"etcd", "pki", "volumes", "pods.json"} }

// preserve are the arguments with which tar keeps everything about a file.
func preserve(args ...string) []string {
	return append(args, "--numeric-owner", "--acls", "--xattrs", "--xattrs-include=*")
}

// Empty reports whether a volume has no cluster, nor what an interrupted restore left of one.
func Empty(dir string) (bool, error) {
	if half, err := HalfRestored(dir); err != nil || half {
		return false, err
	}
	there, err := has(dir, "pki/ca.crt") // from the first start on (containers/node, pki.go)
	return !there, err
}

// HalfRestored reports whether a restore was interrupted that had begun to replace what is on the
// volume. No node starts on it until it is restored again, or wiped.
func HalfRestored(dir string) (bool, error) { return has(dir, restoring) }

func has(dir, name string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Save writes what is on the volume to w.
func Save(ctx context.Context, dir string, h Header, w io.Writer) (err error) {
	var names []string
	for i, name := range parts() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			names = append(names, name)
		} else if i < 2 {
			return fmt.Errorf("find the cluster's data: %w", err)
		}
	}
	own, err := os.MkdirTemp("", "slipway-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(own, headerFile), text, 0o600); err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	args := preserve("--create", "--file=-", "--sparse", "--directory="+own, headerFile, "--directory="+dir)
	err = run(ctx, nil, z, append(args, names...))
	return errors.Join(err, z.Close())
}

// run runs tar.
func run(ctx context.Context, in io.Reader, out io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, "tar", args...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	lines := strings.TrimSpace(said.String())
	return fmt.Errorf("tar: %w: %s", err, lines[strings.LastIndexByte(lines, '\n')+1:])
}

// Check reads all of a file and returns its header. The error says why it is none, or not
// whole.
func Check(ctx context.Context, file string) (h Header, err error) {
	f, z, err := open(file)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer z.Close()
	seen := map[string]bool{}
	r := tar.NewReader(z)
	for first := true; ; first = false {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return h, err
		}
		if ctx.Err() != nil {
			return h, context.Cause(ctx)
		}
		if first {
			if e.Name != headerFile {
				return h, fmt.Errorf("it begins with %s", e.Name)
			}
			if err := json.NewDecoder(io.LimitReader(r, bounded.Generated)).Decode(&h); err != nil {
				return h, fmt.Errorf("decode %s: %w", headerFile, err)
			}
			if h.Version != Version {
				return h, fmt.Errorf("it has version %d; this program knows %d", h.Version, Version)
			}
			continue
		}
		top, _, _ := strings.Cut(e.Name, "/")
		if !slices.Contains(parts(), top) || !filepath.IsLocal(filepath.FromSlash(strings.TrimSuffix(e.Name, "/"))) {
			return h, fmt.Errorf("%s is nothing of a cluster", e.Name)
		}
		seen[top] = true
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the rest of it, with its sum
		return h, err
	}
	if !seen["etcd"] || !seen["pki"] {
		return h, errors.New("it holds no cluster")
	}
	return h, nil
}

func open(file string) (*os.File, *zstd.Decoder, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, z, nil
}

// Restore puts what a file holds, which was checked, in the place of everything on the volume.
// Until all of it is there, the volume is as it was. Then all is renamed; where that is
// interrupted, the volume is HalfRestored, and is restored again.
func Restore(ctx context.Context, dir, file string) error {
	return restore(ctx, dir, file, os.Rename)
}

// restore is Restore with a function that renames.
func restore(ctx context.Context, dir, file string, rename func(from, to string) error) (err error) {
	f, z, err := open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer z.Close()
	at, old := filepath.Join(dir, unfinished), filepath.Join(dir, replaced)
	for _, d := range []string{at, old} {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	args := preserve("--extract", "--file=-", "--same-owner", "--same-permissions", "--directory="+at, "--anchored", "--exclude="+headerFile)
	if err := run(ctx, z, nil, args); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, restoring), nil, 0o600); err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains([]string{lockFile, restoring, unfinished, replaced}, e.Name()) {
			continue
		}
		if err := rename(filepath.Join(dir, e.Name()), filepath.Join(old, e.Name())); err != nil {
			return err
		}
	}
	for _, name := range parts() {
		if err := rename(filepath.Join(at, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.Remove(filepath.Join(dir, restoring)), os.Remove(at), os.RemoveAll(old))
}
