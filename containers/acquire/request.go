package acquire

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// Request is one image to add.
type Request struct {
	Image imageref.Reference // by which manifests and charts name it
	// Path is an OCI layout or an archive to take it from; empty: a registry.
	Path string
	// Named is what Path calls the image; empty: as Image.
	Named string
	// Source is what to take from a registry in place of Image.
	Source *imageref.Reference

	text string // as it was given
}

// ParseRequest reads REF or REF=SOURCE, where SOURCE is the path of an OCI layout or of an
// archive, PATH:NAME where that calls the image otherwise, or another reference. It fails with CodeAbsent.
func ParseRequest(text string) (Request, error) {
	ref, source, given := strings.Cut(text, "=")
	r := Request{text: text}
	var err error
	if _, err := os.Stat(text); err == nil && isPath(text) {
		return Request{}, badRequest(fmt.Errorf("%s is a file, and an image is to be added under a reference: REF=%s", text, text))
	}
	if r.Image, err = imageref.Parse(ref); err != nil {
		return Request{}, badRequest(err)
	}
	if !given {
		return r, nil
	}
	_, statErr := os.Stat(source)
	path, named := split(source)
	switch {
	case statErr == nil:
		r.Path = source
	case path != "":
		r.Path, r.Named = path, named
	case source == "", isPath(source):
		return Request{}, badRequest(fmt.Errorf("%q is neither a directory nor a file: %w", source, statErr))
	default:
		from, err := imageref.Parse(source)
		if err != nil {
			return Request{}, badRequest(fmt.Errorf("%w; and there is no file of that name", err))
		}
		r.Source = &from
	}
	return r, nil
}

// split is the path of a source PATH:NAME, if there is such a file, and the name.
func split(source string) (path, name string) {
	for at, c := range source {
		if c != ':' || at == 0 || at == len(source)-1 {
			continue
		}
		if _, err := os.Stat(source[:at]); err == nil {
			return source[:at], source[at+1:]
		}
	}
	return "", ""
}

// isPath reports whether a source that does not exist was meant to be a path.
func isPath(s string) bool {
	return strings.HasPrefix(s, ".") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.Contains(s, `\`) || strings.HasSuffix(s, ".tar")
}

func badRequest(err error) error {
	return &fault.Fault{Code: CodeAbsent, Class: fault.Usage, Op: "read what is to be added", Err: err,
		Fix: "give a reference as in a manifest, and where it is not taken from its own registry, its source: redis:8.2=redis.tar"}
}

// key is the reference under which the image is entered: by its tag, if it has one.
func (r Request) key() string {
	if tagged := r.Image.Tagged(); tagged != "" {
		return tagged
	}
	return r.Image.String()
}

// ref is what the image is called in its archive: by its digest, for the archive stays
// when the reference by tag is another image's.
func (r Request) ref(f *found) string { return r.Image.At(f.topDigest()) }

// source is the reference of what is taken from a registry.
func (r Request) source() imageref.Reference {
	if r.Source != nil {
		return *r.Source
	}
	return r.Image
}

// from says where the image is taken from, for people.
func (r Request) from() string {
	switch {
	case r.Named != "":
		return r.Path + ":" + r.Named
	case r.Path != "":
		return r.Path
	}
	return r.source().Host
}

// origin says it for the index, which names no path of this machine.
func (r Request) origin() string {
	if r.Path == "" {
		return "registry:" + r.source().String()
	}
	if info, err := os.Stat(r.Path); err == nil && info.IsDir() {
		return "layout"
	}
	return "archive"
}

// open finds the image where it is taken from. The caller closes it.
func (a *adder) open(ctx context.Context, r Request) (*top, error) {
	if r.Path == "" {
		return a.pull(ctx, r.source())
	}
	return openArchive(ctx, r.Path, wanted{ref: r.Image, name: r.Named})
}
