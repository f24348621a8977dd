package bounded

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
)

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
