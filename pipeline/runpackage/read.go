package runpackage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
)

// Package is a package that was read whole, and is as it was written.
type Package struct {
	Info
	Files
	Signed   bool   // it has a signature, which may be anybody's
	SignedBy string // what verify says of that, if it was verified
	Digest   string // "sha256:…" of the archive
}

// Read reads a package from a file and verifies it. Unless verify is nil, the package must have a
// signature: verify gets it with the index that it is for, and returns who signed. The faults have
// the codes CodeUnreadable, CodeAltered, which names everything that differs, and CodeSignature.
func Read(file string, verify func(index, signature []byte) (by string, err error)) (*Package, error) {
	op := "verify " + file
	data, err := load(file)
	if err != nil {
		return nil, unreadable(op, err)
	}
	x := archived{files: Files{}}
	p, err := x.unpack(data)
	if _, unknown := errors.AsType[newer](err); unknown {
		return nil, unreadable(op, err)
	}
	if err != nil {
		return nil, &fault.Fault{Code: CodeAltered, Class: fault.Preflight, Op: op, Err: err,
			Fix: "get the package again from where it was made, and use nothing of this one"}
	}
	if verify == nil {
		return p, nil
	}
	err = errors.New("it is not signed")
	if p.Signed {
		p.SignedBy, err = verify(x.index, x.signature)
	}
	if err != nil {
		return nil, &fault.Fault{Code: CodeSignature, Class: fault.Preflight, Op: op, Err: err,
			Fix: "get the package from somebody you trust, or the public key of its author; whoever packs deployment " + p.Deployment + " signs it with --key FILE of save"}
	}
	return p, nil
}

func unreadable(op string, err error) error {
	return &fault.Fault{Code: CodeUnreadable, Class: fault.Usage, Op: op, Err: bounded.LineError(err),
		Fix: "give the path of a package that save has written, with a program of the same version or a newer one"}
}

// magic is what zstd begins with.
const magic = "\x28\xb5\x2f\xfd"

// load is the content of a file that may be a package.
func load(file string) (data []byte, err error) {
	switch info, err := os.Stat(file); { // before opening, as that would wait at a pipe
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no plain file")
	}
	data, err = bounded.File(file, maxArchive)
	if err == nil && !bytes.HasPrefix(data, []byte(magic)) {
		err = errors.New("it is no run package: it does not begin as zstd does")
	}
	return data, err
}

// archived is what is in an archive.
type archived struct {
	index     []byte // nil: there is none
	signature []byte // nil: there is none
	files     Files
	problems  bounded.Problems
}

// unpack unpacks the file of a package in memory. Its error names everything that is not as it
// was written.
func (x *archived) unpack(data []byte) (*Package, error) {
	d, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(2*window), zstd.WithDecoderMaxMemory(maxTotal))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	plain := sha256.New() // of the archive as it is
	if err := x.read(io.TeeReader(&capped{d, maxTotal}, plain)); err != nil {
		return nil, errors.Join(append([]error{bounded.LineError(fmt.Errorf("the archive: %w", err))}, x.problems...)...)
	}
	p, err := x.compare()
	if err != nil {
		return nil, err
	}
	// Nothing is left for what is between the files: headers, order, padding.
	again := sha256.New()
	if err := archive(again, p.Started, x.index, x.signature, p.Files); err != nil {
		return nil, err
	}
	if !bytes.Equal(again.Sum(nil), plain.Sum(nil)) {
		return nil, errors.New("the archive: the order, the attributes or the padding of its entries are not as slipway save writes them")
	}
	p.Digest = "sha256:" + sum(data)
	return p, nil
}

// capped reads a tar archive no larger than a package may have.
type capped struct {
	r    io.Reader
	left int64
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, fmt.Errorf("it is larger than %d MiB", maxTotal>>20)
	}
	return n, err
}

// read reads the entries of an archive, to its end.
func (x *archived) read(plain io.Reader) error {
	last, left := "its beginning", int64(maxTotal)
	t := tar.NewReader(plain)
	for entries := 1; ; entries++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			if _, err = io.Copy(io.Discard, plain); err == nil {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("it cannot be read after %s: %w", last, err)
		}
		if entries > maxFiles+2 { // the index is one, its signature another
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		last = fmt.Sprintf("%.200q", h.Name)
		if left -= h.Size; h.Size < 0 || left < 0 { // a sparse file takes no room in the archive
			return fmt.Errorf("%s: it is larger than a package may be", last)
		}
		if err := checkSize(h.Name, h.Size); err != nil {
			return fmt.Errorf("%s: %w", last, err)
		}
		data := make([]byte, h.Size) // takes memory as it is filled
		if _, err := io.ReadFull(t, data); err != nil {
			return fmt.Errorf("it cannot be read after %s: %w", last, err)
		}
		x.take(h, data)
	}
}

func (x *archived) take(h *tar.Header, data []byte) {
	_, twice := x.files[h.Name]
	switch wrong := checkName(strings.TrimSuffix(h.Name, "/")); {
	case wrong != nil:
		x.problems.Add("%.200q: %w", h.Name, wrong)
	case h.Typeflag != tar.TypeReg:
		x.problems.Add("%q: it is no plain file, but a link, a directory or something special", h.Name)
	case twice || h.Name == IndexFile && x.index != nil || h.Name == SignatureFile && x.signature != nil:
		x.problems.Add("%q: it is there twice", h.Name)
	case h.Name == IndexFile:
		x.index = data
	case h.Name == SignatureFile:
		x.signature = data
	default:
		x.files[h.Name] = File{Data: data, Executable: h.Mode&0o111 != 0}
	}
}

// compare compares the files with the index.
func (x *archived) compare() (*Package, error) {
	if x.index == nil {
		x.problems.Add("%s: it is missing", IndexFile)
		return nil, errors.Join(x.problems...)
	}
	s, err := open(x.index)
	if _, unknown := errors.AsType[newer](err); unknown && len(x.problems) == 0 {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(append(x.problems, fmt.Errorf("%s: it was altered: %w", IndexFile, err))...)
	}
	listed := map[string]bool{}
	for _, says := range s.Files {
		listed[says.Name] = true
		f, there := x.files[says.Name]
		switch {
		case !there:
			x.problems.Add("%s: it is missing", says.Name)
		case int64(len(f.Data)) != says.Size:
			x.problems.Add("%s: it was altered: it has %d bytes, not %d", says.Name, len(f.Data), says.Size)
		case sum(f.Data) != says.SHA256:
			x.problems.Add("%s: it was altered: its sha256 is another one", says.Name)
		case f.Executable != says.Executable:
			x.problems.Add("%s: it was altered: whether it is executable", says.Name)
		}
	}
	for _, name := range x.files.names() {
		if !listed[name] {
			x.problems.Add("%s: it was added", name)
		}
	}
	checkNames(x.files.names(), x.problems.Add)
	if len(x.problems) > 0 {
		return nil, errors.Join(x.problems...)
	}
	if err := s.Info.printable(); err != nil {
		return nil, err
	}
	return &Package{Info: s.Info, Files: x.files, Signed: x.signature != nil}, nil
}

// WriteTo writes files into a directory, which must not hold any of them.
func (f Files) WriteTo(dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range f.names() {
		if err := checkName(name); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		local := filepath.FromSlash(name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if f[name].Executable {
			mode = 0o755
		}
		to, err := root.OpenFile(local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = to.Write(f[name].Data)
		if err := errors.Join(err, to.Close()); err != nil {
			return err
		}
	}
	return nil
}
