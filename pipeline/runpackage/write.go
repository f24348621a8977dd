package runpackage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-sh/slipway/bounded"
)

// window is how far back the compressor looks: a reader needs as much memory.
const window = 4 << 20

// Write writes a package. sign makes the signature of its index; nil: it has none.
func Write(w io.Writer, info Info, files Files, sign func(index []byte) ([]byte, error)) error {
	names := files.names()
	var problems bounded.Problems
	if err := info.checkTexts(); err != nil {
		problems.Add("%w", err)
	}
	checkNames(names, problems.Add)
	for _, name := range names {
		if err := checkSize(name, int64(len(files[name].Data))); err != nil {
			problems.Add("%s: %w", name, err)
		}
		if err := checkName(name); err != nil {
			problems.Add("%q: %w", name, err)
		} else if reserved(name) {
			problems.Add("%q: no name of a file of a package", name)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	index, err := state(info, files).encode()
	if err != nil {
		return err
	}
	var signature []byte
	if sign != nil {
		if signature, err = sign(index); err != nil {
			return fmt.Errorf("sign the index: %w", err)
		}
	}
	for name, text := range map[string][]byte{IndexFile: index, SignatureFile: signature} {
		if err := checkSize(name, int64(len(text))); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	var plain bytes.Buffer
	if err := archive(&plain, info.Started, index, signature, files); err != nil {
		return err
	}
	if plain.Len() > maxTotal {
		return fmt.Errorf("it is larger than %d MiB", maxTotal>>20)
	}
	return compress(w, plain.Bytes())
}

// archive writes the tar archive: the index, its signature unless that is nil, then the files by name.
func archive(w io.Writer, at time.Time, index, signature []byte, files Files) error {
	t := tar.NewWriter(w)
	put := func(name string, f File) error {
		mode := int64(0o644)
		if f.Executable {
			mode = 0o755
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(f.Data)), ModTime: at.UTC().Truncate(time.Second)}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		_, err := t.Write(f.Data)
		return err
	}
	if err := put(IndexFile, File{Data: index}); err != nil {
		return err
	}
	if signature != nil {
		if err := put(SignatureFile, File{Data: signature}); err != nil {
			return err
		}
	}
	for _, name := range files.names() {
		if err := put(name, files[name]); err != nil {
			return err
		}
	}
	return t.Close()
}

// compress writes an archive as the file of a package. One encoder, so that the same
// archive makes the same bytes.
func compress(w io.Writer, plain []byte) error {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	compressed := e.EncodeAll(plain, nil)
	if len(compressed) > maxArchive {
		return fmt.Errorf("it is larger than %d MiB", maxArchive>>20)
	}
	_, err = w.Write(compressed)
	return err
}
