package source

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// runConfig is the configuration in what slipway report writes.
const runConfig = "config.yaml"

// Recorded reads a configuration: file itself, or the one in it, which a run has
// recorded, where that is the directory of a run or a .tar.gz of one.
func Recorded(file string, io console.Streams) (text []byte, recorded bool, err error) {
	if file != "-" {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return nil, false, err
		case info.IsDir():
			name := filepath.Join(file, runConfig)
			// Whoever made the directory may have put a link to another file there, or a pipe.
			if info, err = os.Lstat(name); err == nil && !info.Mode().IsRegular() {
				err = fmt.Errorf("%s is not a regular file", name)
			}
			if err == nil {
				text, err = Contents(name, io)
			}
			return text, true, err
		case strings.HasSuffix(file, ".tar.gz"), strings.HasSuffix(file, ".tgz"):
			text, err = packed(file)
			return text, true, err
		}
	}
	text, err = Contents(file, io)
	return text, false, err
}

// Contents is what a file holds, or standard input (-), which an interruption leaves.
func Contents(file string, streams console.Streams) ([]byte, error) {
	if file != "-" {
		return bounded.File(file, bounded.Written)
	}
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := bounded.Read(streams.In, bounded.Written)
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-streams.Stop:
		return nil, &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "read standard input", Err: errors.New("interrupted"), Fix: "run the same command again"}
	}
}

// packed is the configuration in an archive, at its top or in a directory there.
func packed(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", file, err)
	}
	for archive := tar.NewReader(io.LimitReader(plain, bounded.Packed)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("there is no %s in %s", runConfig, file)
		}
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", file, err)
		}
		dir, name := path.Split(path.Clean(h.Name))
		if name == runConfig && strings.Count(dir, "/") <= 1 && h.Typeflag == tar.TypeReg {
			text, err := bounded.Read(archive, bounded.Written)
			if err != nil {
				err = fmt.Errorf("unpack %s: %w", file, err)
			}
			return text, err
		}
	}
}
