package main

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Archives depend on names, content and modes of their files and on the time that all get:
// neither on the order nor on the owners and times of files on this machine.

// archive writes files into a folder of an archive: a zip where its name says so, else a
// tar.gz.
func archive(name, folder string, files []file, at time.Time) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
	if strings.HasSuffix(name, ".zip") {
		return zipped(out, folder, files, at)
	}
	return tarred(out, folder, files, at)
}

func tarred(w io.Writer, folder string, files []file, at time.Time) error {
	compressed := gzip.NewWriter(w)
	out := tar.NewWriter(compressed)
	for _, f := range files {
		info, err := os.Stat(f.path)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Size: info.Size(), Mode: int64(f.mode), ModTime: at, Uname: "root", Gname: "root",
		}); err != nil {
			return err
		}
		if err := f.copyTo(out); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), compressed.Close())
}

func zipped(w io.Writer, folder string, files []file, at time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		entry, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if err := f.copyTo(entry); err != nil {
			return err
		}
	}
	return out.Close()
}

func (f file) copyTo(w io.Writer) error {
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if _, err := io.Copy(w, in); err != nil {
		return fmt.Errorf("pack %s: %w", f.name, err)
	}
	return nil
}
