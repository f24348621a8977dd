// Package publish pushes a bundle to a container registry, from which runs then
// take everything by digest. It is heavy; package containers is not.
//
// Pushing is idempotent: what the registry has is not uploaded again, so that a
// push that was interrupted goes on where it ended.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/imageref"
)

// Options say what to push and where. Dir, Anchor, To and Lock are required.
type Options struct {
	Dir  string     // of the bundle
	To   string     // host[:port]/path; an image is <To>/<short name>
	Lock *lock.Lock // that the bundle must agree with
	// Anchor vouches for the bundle.
	Anchor trust.Anchor
	// PlainHTTP allows HTTP without TLS on hosts other than this machine itself,
	// on which it is always allowed.
	PlainHTTP bool
	// Keychain has the credentials; nil is Docker's: what `docker login` wrote.
	Keychain authn.Keychain
	// Transport sends the requests; nil is the default with the proxies of the
	// environment.
	Transport http.RoundTripper
	// Observe receives the progress; calls do not overlap. It may be nil.
	Observe func(registries.Progress)
	// Warn receives warnings. It may be nil.
	Warn func(string)
}

// Push checks the bundle, pushes it and returns the lock file that says where
// everything is. Its faults name registry and image.
func Push(ctx context.Context, o Options) (*lock.File, error) {
	b, err := bundle.Read(o.Dir)
	if err != nil {
		return nil, err
	}
	vouched, err := o.Anchor.Check(ctx, b, nil)
	if err != nil {
		return nil, err
	}
	if w := vouched.Warning(); w != "" && o.Warn != nil {
		o.Warn(w)
	}
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	if err := o.Lock.Verify(b); err != nil {
		return nil, err
	}
	p, err := newPusher(o)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "slipway-push-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for layers: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	archives := ociarchive.Archives{}
	defer archives.Close()
	all, err := parts(b, scratch, archives)
	if err != nil {
		return nil, err
	}

	pushed := lock.Pushed{Index: b.Index}
	for n := range all {
		if err := p.push(ctx, &all[n], n+1, len(all)); err != nil {
			return nil, err
		}
		switch digest := all[n].digest.String(); all[n].name {
		case lock.Toolchain:
			pushed.Toolchain = digest
		case lock.Manifests:
			pushed.Manifests = digest
		}
	}
	return &lock.File{Version: lock.Format, Location: o.To, Bundles: map[string]lock.Pushed{b.Platform: pushed}}, nil
}

type pusher struct {
	Options
	guard   *registries.Guard
	options []name.Option
}

func newPusher(o Options) (*pusher, error) {
	o.Keychain, o.Transport = cmp.Or[authn.Keychain](o.Keychain, authn.DefaultKeychain), cmp.Or(o.Transport, remote.DefaultTransport)
	p := &pusher{Options: o}
	if p.Observe == nil {
		p.Observe = func(registries.Progress) {}
	}
	if o.PlainHTTP {
		p.options = append(p.options, name.Insecure)
	}
	p.guard = &registries.Guard{Next: p.Transport, Allow: o.PlainHTTP}
	host, _, _ := strings.Cut(o.To, "/")
	if !imageref.IsRegistry(o.To) || (!strings.ContainsAny(host, ".:") && host != "localhost") {
		return nil, p.fault("", fmt.Errorf("%w: %q", errPlace, o.To))
	}
	return p, nil
}

func (p *pusher) remote(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(p.Keychain), remote.WithTransport(p.guard), remote.WithJobs(4),
	}
}

// push pushes one image unless the registry has it under its tag already.
func (p *pusher) push(ctx context.Context, it *part, n, of int) error {
	start := time.Now()
	say := registries.Progress{Image: it.title, N: n, Of: of, Total: it.size}
	ref, err := name.NewTag(p.To+"/"+it.name+":"+it.tag(), p.options...)
	if err != nil {
		return p.fault(it.title, fmt.Errorf("%w: %w", errPlace, err))
	}
	// A registry that has a manifest has its blobs: it took them before.
	if head, err := remote.Head(ref, p.remote(ctx)...); err == nil && head.Digest == it.digest {
		say.Done, say.Finished, say.There, say.Took = it.size, true, true, time.Since(start)
		p.Observe(say)
		return nil
	}
	updates, drained := make(chan v1.Update, 16), make(chan struct{})
	go func() {
		defer close(drained)
		for u := range updates {
			if u.Error == nil {
				say.Done, say.Total = u.Complete, u.Total
				p.Observe(say)
			}
		}
	}()
	err = remote.Write(ref, it.image, append(p.remote(ctx), remote.WithProgress(updates))...)
	<-drained // Write closes the channel
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return p.fault(it.title, err)
	}
	say.Done, say.Finished, say.Took = say.Total, true, time.Since(start)
	p.Observe(say)
	return nil
}

var errPlace = errors.New("not a place in a registry")
