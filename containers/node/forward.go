package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// forwarder answers pulls of the mirror's images, and of what they stand for: it asks the
// mirror for them, with an account if it has one.
type forwarder struct {
	base      string // URL below which the mirror has its repositories
	registry  name.Registry
	path      string // of the mirror in its registry; empty: none
	account   authn.Authenticator
	transport http.RoundTripper    // without the account
	manifests map[string]forwarded // by complete reference that an image stands for
	paths     map[string][]string  // of the mirror's repositories, by the one that they stand for

	mu     sync.Mutex
	client *http.Client // with the account; nil until the mirror has said how it wants that
}

type forwarded struct {
	path   string
	digest digest.Digest
	index  bool // an index, which the mirror has as a blob
}

// newForwarder forwards to a mirror, a URL that may have a path.
func newForwarder(mirror string, account authn.Authenticator, all []override) (*forwarder, error) {
	scheme, rest, _ := strings.Cut(mirror, "://")
	host, path, _ := strings.Cut(rest, "/")
	var options []name.Option
	if scheme == "http" {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(host, options...)
	if err != nil {
		return nil, fmt.Errorf("ask the mirror %s: %w", mirror, err)
	}
	plain := http.DefaultTransport.(*http.Transport).Clone() // it is one
	plain.ResponseHeaderTimeout = time.Minute
	f := &forwarder{
		base: strings.TrimSuffix(scheme+"://"+host+"/v2/"+path, "/"), registry: registry, path: path, account: account,
		transport: plain, manifests: map[string]forwarded{}, paths: map[string][]string{},
	}
	for _, s := range all {
		image := forwarded{path: s.Path, digest: digest.Digest(s.Digest)}
		top := image
		if s.Index != "" {
			top = forwarded{path: s.Path, digest: digest.Digest(s.Index), index: true}
		}
		for _, ref := range s.StandsFor {
			of := repository(ref)
			f.manifests[of+"@"+s.Digest] = image
			if s.Index != "" {
				f.manifests[of+"@"+s.Index] = top
			}
			if !strings.Contains(ref, "@") {
				f.manifests[ref] = top
			}
			if !slices.Contains(f.paths[of], s.Path) {
				f.paths[of] = append(f.paths[of], s.Path)
			}
		}
	}
	return f, nil
}

func (f *forwarder) names() imageNames {
	names := imageNames{}
	for name, d := range f.manifests {
		names[name] = d.digest
	}
	return names
}

func (f *forwarder) handler() http.Handler { return pullHandler(f.manifest, f.blob) }

// ownPath is the path below the mirror of a repository of slipway.local.
func ownPath(of string) (path string, own bool) { return strings.CutPrefix(of, registryHost+"/") }

func (f *forwarder) manifest(w http.ResponseWriter, r *http.Request, of, ref string) {
	if path, own := ownPath(of); own {
		if err := f.pass(w, r, path, "manifests", ref, "Accept"); err != nil {
			fail(w, err)
		}
		return
	}
	d, ok := f.manifests[complete(of, ref)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	b, err := f.document(r.Context(), d)
	if err != nil {
		fail(w, err)
		return
	}
	head := struct{ MediaType string }{ocispec.MediaTypeImageManifest}
	if d.index {
		head.MediaType = ocispec.MediaTypeImageIndex
	}
	_ = json.Unmarshal(b, &head) // containerd finds out that it is no JSON
	serveManifest(w, r, head.MediaType, d.digest, b)
}

// document reads a manifest or an index from the mirror, and verifies its digest.
func (f *forwarder) document(ctx context.Context, d forwarded) ([]byte, error) {
	kind := "manifests"
	if d.index {
		kind = "blobs"
	}
	response, err := f.request(ctx, http.MethodGet, d.path, kind+"/"+d.digest.String(), http.Header{"Accept": {
		ocispec.MediaTypeImageManifest, "application/vnd.docker.distribution.manifest.v2+json",
	}})
	if err != nil {
		return nil, err
	}
	defer release(response.Body)
	b, err := io.ReadAll(io.LimitReader(response.Body, maxManifest))
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(b); got != d.digest {
		return nil, fmt.Errorf("the mirror has %s as %s", d.digest, got)
	}
	return b, nil
}

func (f *forwarder) blob(w http.ResponseWriter, r *http.Request, of, d string) {
	paths := f.paths[of]
	if path, own := ownPath(of); own {
		paths = []string{path}
	}
	last := errNotThere
	for _, path := range paths {
		err := f.pass(w, r, path, "blobs", d, "Range")
		if err == nil {
			return
		}
		if !errors.Is(err, errNotThere) || errors.Is(last, errNotThere) {
			last = err
		}
	}
	fail(w, last)
}

// The paths of repositories, and the tags and digests in them. What is none might lead out of
// the mirror's path, to what only the account may read.
var (
	repositoryPath = regexp.MustCompile(`^\w[\w.-]*(/\w[\w.-]*)*$`)
	tagOrDigest    = regexp.MustCompile(`^\w[\w.:+-]*$`)
)

// pass passes on a request for a manifest or a blob, by its tag or digest, to a repository of
// the mirror, with the headers that are named, and its answer. It answers nothing where it
// returns an error.
func (f *forwarder) pass(w http.ResponseWriter, r *http.Request, path, kind, ref string, headers ...string) error {
	if !repositoryPath.MatchString(path) || !tagOrDigest.MatchString(ref) {
		return errNotThere
	}
	header := http.Header{}
	for _, name := range headers {
		header[name] = r.Header[name]
	}
	response, err := f.request(r.Context(), r.Method, path, kind+"/"+ref, header)
	if err != nil {
		return err
	}
	defer release(response.Body)
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Docker-Content-Digest"} {
		if v := response.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // containerd sees that it is cut
	return nil
}

// fail answers with an error. containerd 1.6 repeats nothing of an answer but its status, words
// and all, so they are the reason; the kubelet and its events have it from there.
func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, errNotThere) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	connection, buffer, hijack := http.NewResponseController(w).Hijack()
	if hijack != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reason := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, err.Error())
	fmt.Fprintf(buffer, "HTTP/1.1 502 %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", reason[:min(len(reason), 1000)])
	_ = buffer.Flush() // containerd sees that it is cut
	release(connection)
}

var errNotThere = errors.New("the mirror does not have it")

// request sends a request to a repository of the mirror. An answer that is no success is an error.
func (f *forwarder) request(ctx context.Context, method, path, what string, header http.Header) (*http.Response, error) {
	client, err := f.connect(ctx, path)
	if err != nil {
		return nil, err
	}
	address := f.base + "/" + path + "/" + what
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header = header.Clone()
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	release(response.Body)
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %s", errNotThere, address)
	}
	return nil, fmt.Errorf("the mirror answers %s to %s", response.Status, address)
}

// connect asks the mirror how it wants the account, until it has answered, and returns the client
// that does so. That sends no account without TLS to a registry with TLS, nor to another host.
func (f *forwarder) connect(ctx context.Context, path string) (*http.Client, error) {
	f.mu.Lock()
	known := f.client
	f.mu.Unlock()
	if known != nil {
		return known, nil
	}
	with := f.transport
	if strings.HasPrefix(f.base, "https:") {
		with = onlyTLS{f.transport}
	}
	t, err := transport.NewWithContext(ctx, f.registry, f.account, with, []string{f.registry.Repo(f.path, path).Scope(transport.PullScope)})
	if err != nil {
		return nil, fmt.Errorf("ask the mirror: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.client = &http.Client{Transport: t}
	return f.client, nil
}

// onlyTLS sends no account without TLS, and does not ask a registry without it: the client of a
// registry on a private network would try that by itself. A registry may redirect to a store
// without TLS, which gets no account, and what it has is compared with its digest.
type onlyTLS struct{ next http.RoundTripper }

// RoundTrip sends r unless that is without TLS.
func (o onlyTLS) RoundTrip(r *http.Request) (*http.Response, error) {
	redirected := r.Response != nil && r.Method == http.MethodGet && r.Header.Get("Authorization") == ""
	if r.URL.Scheme != "https" && !redirected {
		return nil, fmt.Errorf("%s has no TLS, and the mirror has", r.URL.Host)
	}
	return o.next.RoundTrip(r)
}
