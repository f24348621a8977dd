// Package bounded handles untrusted input within limits: it reads files and streams that do not
// fill the memory, and gives up work that does not end.
package bounded

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// The limits, in bytes.
const (
	Written   = 1 << 20   // what a person writes: a configuration, secrets, a key, a kubeconfig
	Generated = 64 << 20  // what a program writes: a record, a plan, a manifest, an index
	Packed    = 256 << 20 // what a program packs of many files: a release
)

// ErrTooLarge is the error of what is larger than its limit.
var ErrTooLarge = errors.New("larger than what is read of such a file")

// Read is io.ReadAll that reads at most limit bytes; with more, the error is ErrTooLarge.
func Read(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, TooLarge("", limit)
	}
	return data, err
}

// Until returns a reader of what r has, until ctx ends: its cause is the error then. It lives as
// long as the call that reads.
func Until(ctx context.Context, r io.Reader) io.Reader { return until{ctx, r} }

type until struct {
	ctx context.Context //nolint:containedctx // as long as one read
	r   io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

// TooLarge is ErrTooLarge that names the file, if it has a name, and the limit.
func TooLarge(name string, limit int64) error {
	err := fmt.Errorf("%w, %d MiB", ErrTooLarge, limit>>20)
	if name != "" {
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return err
}

// maxMessage limits the text of an error that may quote what others made, in bytes.
const maxMessage = 4096

// Error shortens the text of err to its beginning if it is long: decoders quote values of any length.
func Error(err error) error {
	if err == nil || len(err.Error()) <= maxMessage {
		return err
	}
	return long{err}
}

type long struct{ error }

func (l long) Error() string { return strings.ToValidUTF8(l.error.Error()[:maxMessage], "") + "…" }

func (l long) Unwrap() error { return l.error }

// File is os.ReadFile with a limit. It reads pipes, too.
func File(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return read(f, name, limit)
}

// FS is fs.ReadFile with a limit.
func FS(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	return read(f, name, limit)
}

func read(f fs.File, name string, limit int64) ([]byte, error) {
	data, err := Read(f, limit)
	if errors.Is(err, ErrTooLarge) {
		err = TooLarge(name, limit)
	}
	_ = f.Close() // it was only read
	return data, err
}

// Unpack is the directory in a zip archive whose files are not compressed. It rejects files that
// are larger than the archive, with ErrTooLarge: whoever wrote them wants to fill a disk.
func Unpack(archive []byte) (fs.FS, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	size := uint64(0)
	for _, f := range files.File { // more than a file says of itself cannot be read of it
		if size += f.UncompressedSize64; f.UncompressedSize64 > uint64(len(archive)) || size > uint64(len(archive)) {
			return nil, &fs.PathError{Op: "read", Path: f.Name, Err: fmt.Errorf("%w: larger than its archive", ErrTooLarge)}
		}
	}
	return files, nil
}
