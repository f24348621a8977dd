package ociarchive

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// CodeImages: archives of the bundle do not hold the images that its index names.
const CodeImages fault.Code = "LCK-005"

// statusFile is where Debian's package manager keeps what is installed.
const statusFile = "var/lib/dpkg/status"

// Packages compares the images of a bundle, down to each layer, with their digests in its index, and
// reads the Debian packages of those that were not added: versions by image and name. An image of
// which dpkg knows nothing is not in it. It fails with CodeImages and names every image that is
// another one.
func Packages(ctx context.Context, b *bundle.Bundle) (map[string]map[string]string, error) {
	r := packageReader{ctx: ctx, layers: map[v1.Hash]map[string]string{}, archives: Archives{}}
	defer r.archives.Close()
	out := map[string]map[string]string{}
	var problems []error
	for _, i := range b.Index.Images {
		versions, err := r.image(b, i)
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("image %s: %w", i.Name, err))
		case versions != nil && !i.Added():
			out[i.Name] = versions
		}
	}
	if len(problems) == 0 {
		return out, nil
	}
	return nil, &fault.Fault{Code: CodeImages, Class: fault.Preflight, Op: "read the images of the bundle", Fix: bundle.FixDamaged, Err: errors.Join(problems...)}
}

// packageReader reads each archive and each layer once. It lives for one call of Packages.
type packageReader struct {
	ctx      context.Context //nolint:containedctx // as long as one call
	archives Archives
	layers   map[v1.Hash]map[string]string // the packages by the status file of each; nil: it has none
}

func (r *packageReader) image(b *bundle.Bundle, i bundle.Image) (map[string]string, error) {
	archive, err := r.archives.Open(b.Path(i.In()))
	if err != nil {
		return nil, err
	}
	image, err := archive.Image(i.Ref, i.Digest)
	if err != nil {
		return nil, err
	}
	if _, err := image.RawConfigFile(); err != nil { // compared with its digest, as the manifest was
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	var versions map[string]string
	for _, l := range layers { // the highest that has the file decides
		found, err := r.layer(archive, l)
		if err != nil {
			return nil, err
		}
		if found != nil {
			versions = found
		}
	}
	return versions, nil
}

func (r *packageReader) layer(archive *Archive, l v1.Layer) (map[string]string, error) {
	digest, err := l.Digest()
	if err != nil {
		return nil, err
	}
	if known, ok := r.layers[digest]; ok {
		return known, nil
	}
	if err := intact(r.ctx, archive, digest); err != nil {
		return nil, err
	}
	versions, err := status(l)
	if err == nil {
		r.layers[digest] = versions
	}
	return versions, err
}

func intact(ctx context.Context, archive *Archive, digest v1.Hash) error {
	blob, err := archive.Blob(BlobPath(digest))
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, bounded.Until(ctx, blob))
	if err := errors.Join(err, blob.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != digest.Hex {
		return fmt.Errorf("the content of %s is another one", digest)
	}
	return nil
}

func status(l v1.Layer) (versions map[string]string, err error) {
	plain, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Clean(h.Name) == statusFile {
			return Installed(files)
		}
	}
}

// Installed reads dpkg's status file: the versions of packages by name.
func Installed(r io.Reader) (map[string]string, error) {
	out := map[string]string{}
	name, there := "", false
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "Package":
			name, there = value, false
		case "Status":
			there = strings.HasSuffix(value, " installed")
		case "Version":
			if there {
				out[name] = value
			}
		}
	}
	return out, lines.Err()
}
