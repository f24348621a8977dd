package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// diskSize is that of a bucket's own disk, which takes no space before something is in it.
const diskSize = 1 << 30

// mountDisk mounts a file system in a file on a directory, and makes it if it is not there. The
// error is a skipped if this machine cannot do so.
func mountDisk(ctx context.Context, image, dir string) (unmount func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Stat(image); err != nil {
		if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, diskSize)); err != nil {
			return nil, err
		}
		if err := tool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
			return nil, errors.Join(skipped(err.Error()), os.Remove(image))
		}
	}
	if err := tool(ctx, "mount", "-o", "loop", image, dir); err != nil {
		return nil, skipped(err.Error())
	}
	return func() error { return tool(context.WithoutCancel(ctx), "umount", dir) }, nil
}

func tool(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// engineState is where the engine of make engine keeps what it keeps, in its root.
const engineState = "/var/lib/dagger"

// disk is the directory whose file system is filled: the bucket's or, without one, the engine's.
// The error is a skipped unless that is on a loop device: no other disk is ever filled.
func (d *deployment) disk(ctx context.Context) (dir string, err error) {
	at, pid := engineState, 0
	if d.bucket != nil {
		if d.bucket.noDisk != nil {
			return "", d.bucket.noDisk
		}
		at, pid = d.bucket.server.Objects(), os.Getpid()
	} else if pid, err = d.engine(ctx); err != nil {
		return "", err
	}
	mounts, err := os.ReadFile(filepath.Join(procDir(pid), "mountinfo"))
	if err != nil {
		return "", err
	}
	if device := deviceOf(mounts, at); !strings.HasPrefix(device, "/dev/loop") {
		return "", skipped(fmt.Sprintf("%s is on %s, and only a loop device is filled: give --bucket, or start an engine whose SLIPWAY_CACHE is on one", at, device))
	}
	return filepath.Join(procDir(pid), "root", at), nil
}

func (d *deployment) hasDisk(ctx context.Context) error {
	_, err := d.disk(ctx)
	return err
}

// deviceOf is the device of the file system that a path is on, by proc's mountinfo.
func deviceOf(mountinfo []byte, path string) (device string) {
	longest := ""
	for lines := bufio.NewScanner(bytes.NewReader(mountinfo)); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, source := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(source) < 2 {
			continue
		}
		at := fields[4]
		if rel, err := filepath.Rel(at, path); err == nil && filepath.IsLocal(rel) && len(at) >= len(longest) {
			longest, device = at, source[1] // of several at one place the last is on top
		}
	}
	return device
}

// fillDisk fills the disk for the round's pause, or until the install has ended.
func (r *round) fillDisk(ctx context.Context, inst *running) (string, error) {
	dir, err := r.disk(ctx)
	if err != nil {
		return "", err
	}
	began, stop := time.Now(), make(chan struct{})
	go func() {
		r.wait(ctx, inst)
		close(stop)
	}()
	n, err := fill(dir, stop)
	return fmt.Sprintf("the disk was full for %s, with %d MiB", time.Since(began).Round(time.Second), n>>20), err
}

// refill is the time between two looks for what has become free on a disk.
const refill = 200 * time.Millisecond

// fill takes all that is free on the file system of a directory, and what becomes free, until
// stop is closed. Then it gives that back, and returns how many bytes it was.
func fill(dir string, stop <-chan struct{}) (taken int64, err error) {
	f, err := os.CreateTemp(dir, ".full-")
	if err != nil {
		return 0, fmt.Errorf("fill the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil { // what it takes is given back however this ends
		return 0, fmt.Errorf("fill the disk: %w", err)
	}
	for {
		if taken, err = grow(int(f.Fd()), taken); err != nil {
			return taken, fmt.Errorf("fill the disk: %w", err)
		}
		select {
		case <-stop:
			return taken, nil
		case <-time.After(refill):
		}
	}
}

// grow makes a file as large as its file system allows, from a size on that it has.
func grow(fd int, size int64) (int64, error) {
	for piece := int64(1 << 28); piece >= 1<<12; {
		switch err := unix.Fallocate(fd, 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			return size, err
		}
	}
	return size, nil
}
