// Package acquire puts images into a bundle: from a registry, an OCI layout or an
// archive.
//
// Each image gets an archive of its own, so that nothing that the bundle holds is
// written again. The image is in the bundle once the index names its archive, which is
// the last thing that is written: an interrupted call leaves the bundle as it was.
package acquire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// Options say what to add. Dir and Images are required.
type Options struct {
	Dir    string // of the bundle
	Images []Request
	// Replace takes an image also where the bundle has another one under its reference.
	Replace bool
	// PlainHTTP allows HTTP without TLS on hosts other than this machine itself, on which
	// it is always allowed.
	PlainHTTP bool
	// Keychain has the credentials; nil is Docker's: what `docker login` wrote.
	Keychain authn.Keychain
	// Transport sends the requests; nil is the default with the proxies of the environment.
	Transport http.RoundTripper
	// Waiting is called once if Add has to wait for another process that changes the bundle. It
	// may be nil.
	Waiting func()
	// Observe receives the progress; calls do not overlap. It may be nil.
	Observe func(registries.Progress)
	// Keep is called before the index is replaced, with the digests of the old and the new index.
	// It may be nil.
	Keep func(before, after string)
}

// adder adds images to one bundle, whose lock it holds.
type adder struct {
	Options
	bundle *bundle.Bundle
	index  string // digest of its index
	guard  *registries.Guard
}

// Add adds images to a bundle, each for the bundle's platform. One that is there is left
// alone. An image that cannot be added does not keep the others out; the error names each
// of them.
func Add(ctx context.Context, o Options) error {
	o.Keychain, o.Transport = cmp.Or[authn.Keychain](o.Keychain, authn.DefaultKeychain), cmp.Or(o.Transport, remote.DefaultTransport)
	if o.Observe == nil {
		o.Observe = func(registries.Progress) {}
	}
	if o.Keep == nil {
		o.Keep = func(string, string) {}
	}
	b, err := bundle.Read(o.Dir)
	if err != nil {
		return err
	}
	release, err := lockBundle(ctx, b, o.Waiting)
	if err != nil {
		return err
	}
	defer release()
	if b, err = bundle.Read(o.Dir); err != nil { // it may have changed meanwhile
		return err
	}
	a := &adder{Options: o, bundle: b, index: b.ReadDigest(), guard: &registries.Guard{Next: o.Transport, Allow: o.PlainHTTP}}
	left, _ := fs.Glob(os.DirFS(b.Path(bundle.AddedDir)), atomicfile.Unfinished+"*") // the pattern is a good one
	for _, name := range left {
		_ = os.Remove(b.Path(path.Join(bundle.AddedDir, name))) // a killed call left it; nothing reads it
	}
	var problems []error
	for n, r := range o.Images {
		if err := a.add(ctx, r, n+1); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			problems = append(problems, a.fault(r, err))
		}
	}
	return errors.Join(problems...)
}

// lockBundle waits until no other process changes the bundle. The lock ends with the process at
// the latest. It is on a file of the bundle that stays as it is, so that nothing is left of it.
func lockBundle(ctx context.Context, b *bundle.Bundle, waiting func()) (release func(), err error) {
	path := b.Path(b.Files[0].Path)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, errors.Join(fmt.Errorf("lock the bundle: %s is not a regular file", path), err)
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		if waiting != nil {
			waiting()
		}
		if _, err = lock.TryLockContext(ctx, 100*time.Millisecond); err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the bundle: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

func (a *adder) add(ctx context.Context, r Request, n int) error {
	start := time.Now()
	say := registries.Progress{Image: r.Image.String(), N: n, Of: len(a.Images)}
	finish := func(there bool) error {
		say.Done, say.Finished, say.There, say.Took = say.Total, true, there, time.Since(start)
		a.Observe(say)
		return nil
	}
	have := a.find(r)
	if have != nil && r.Image.Digest != "" && slices.Contains([]string{have.Digest, have.Index}, r.Image.Digest) {
		return finish(true)
	}
	from, err := a.open(ctx, r)
	if err != nil {
		return err
	}
	if from.close != nil {
		defer func() { _ = from.close() }() // only read
	}
	found, err := choose(from, a.bundle.Platform)
	if err != nil {
		return err
	}
	say.Total = found.size()
	if d := r.Image.Digest; d != "" && d != found.digest() && d != found.indexDigest() {
		return fmt.Errorf("%w: %s has %s, and the reference says %s", errOther, r.from(), found.topDigest(), d)
	}
	if have != nil {
		switch {
		case have.Digest == found.digest() && (found.indexDigest() == "" || have.Index == found.indexDigest()):
			return finish(true)
		case have.Digest != found.digest() && !a.Replace:
			return fmt.Errorf("%w: %s has %s, and the bundle has %s under this reference (as %s)", errOther, r.from(), found.digest(), have.Digest, have.Name)
		}
	}
	name := path.Join(bundle.AddedDir, strings.TrimPrefix(found.topDigest(), "sha256:")+".tar")
	listed := slices.ContainsFunc(a.bundle.Files, func(f bundle.File) bool { return f.Path == name })
	file := bundle.File{Path: name, Name: r.key(), Kind: bundle.Images, Version: versionOf(r.Image), Origin: r.origin()}
	if !listed {
		if file, err = a.write(ctx, found, file, r.ref(found), func(done int64) { say.Done = done; a.Observe(say) }); err != nil {
			return err
		}
	}
	if err := a.enter(r, found, file, listed); err != nil {
		return err
	}
	return finish(false)
}

// find is the bundle's image that stands for the reference of a request; nil if there is
// none.
func (a *adder) find(r Request) *bundle.Image {
	at := slices.IndexFunc(a.bundle.Index.Images, func(i bundle.Image) bool { return slices.Contains(i.StandsFor, r.key()) })
	if at < 0 {
		return nil
	}
	return &a.bundle.Index.Images[at]
}

func versionOf(r imageref.Reference) string {
	if r.Tag != "" {
		return r.Tag
	}
	return r.Digest
}
