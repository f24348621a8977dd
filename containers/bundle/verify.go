package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// Verify compares size and sha256 of every file with the index, several files
// at a time; a tool must be executable too, for steps get it as it is. It fails
// with CodeContent and names each file that is missing, that differs, or that the
// index does not list.
func (b *Bundle) Verify(ctx context.Context) error {
	if b.dir == "" {
		return errors.New("verify a bundle that was not read from a directory")
	}
	problems := make([]string, len(b.Files))
	var all errgroup.Group
	all.SetLimit(max(2, runtime.NumCPU()))
	for i, f := range b.Files {
		all.Go(func() error { problems[i] = compare(ctx, b.Path(f.Path), f); return nil })
	}
	_ = all.Wait() // the problems are in their slice
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("verify the bundle: %w", context.Cause(ctx))
	}
	extra, err := b.unlisted()
	if err != nil {
		return fmt.Errorf("list the files of the bundle: %w", err)
	}
	var told bounded.Problems
	for _, problem := range append(problems, extra...) {
		if problem != "" {
			told.Add("%s", problem)
		}
	}
	if len(told) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: CodeContent, Class: fault.Preflight, Op: "verify the bundle " + b.dir, Fix: FixDamaged,
		Err: errors.New(strings.ReplaceAll(errors.Join(told...).Error(), "\n", "; ")),
	}
}

// compare says what is wrong with one file, or nothing.
func compare(ctx context.Context, name string, want File) string {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return want.Path + " is missing"
	case err != nil:
		return want.Path + " cannot be read: " + err.Error()
	case !info.Mode().IsRegular():
		return want.Path + " is not a regular file"
	case want.Kind == Tool && info.Mode()&0o111 == 0:
		return want.Path + " is not executable: chmod +x " + want.Path
	case info.Size() != want.Size:
		return fmt.Sprintf("%s has %d bytes, the index says %d", want.Path, info.Size(), want.Size)
	}
	got, err := Sum(ctx, name)
	if err != nil {
		return want.Path + " cannot be read: " + err.Error()
	}
	if got != want.SHA256 {
		return fmt.Sprintf("%s has sha256 %s…, the index says %s…", want.Path, got[:12], want.SHA256[:12])
	}
	return ""
}

// unlisted names the files that the index does not list, except in AddedDir, its signature, and
// what a killed `slipway bundle add` left of another index.
func (b *Bundle) unlisted() ([]string, error) {
	listed := map[string]bool{IndexFile: true, SignatureFile: true}
	for _, f := range b.Files {
		listed[f.Path] = true
	}
	var extra []string
	err := filepath.WalkDir(b.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(b.dir, name)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(relative)
		if !listed[slashed] && !strings.HasPrefix(slashed, AddedDir+"/") && !strings.HasPrefix(relative, atomicfile.Unfinished) {
			extra = append(extra, slashed+" is not in the index")
		}
		return nil
	})
	return extra, err
}

// Sum is the sha256 of a file, in hex.
func Sum(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.CopyBuffer(h, bounded.Until(ctx, f), make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
