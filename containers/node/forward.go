package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// forwarder answers pulls of what images of the mirror stand for: it asks the mirror for
// them, where they have other names.
type forwarder struct {
	base      string // URL below which the mirror has its repositories
	client    *http.Client
	manifests map[string]forwarded // by complete reference
	paths     map[string][]string  // of the mirror's repositories, by the one that they stand for

	mu     sync.Mutex
	tokens map[string]string // by path
}

// forwarded is a document of the mirror.
type forwarded struct {
	path   string
	digest digest.Digest
	index  bool // an index, which the mirror has as a blob
}

// newForwarder forwards to a mirror, a URL that may have a path.
func newForwarder(mirror string, all []standIn) *forwarder {
	scheme, rest, _ := strings.Cut(mirror, "://")
	host, path, _ := strings.Cut(rest, "/")
	f := &forwarder{
		base:      strings.TrimSuffix(scheme+"://"+host+"/v2/"+path, "/"),
		manifests: map[string]forwarded{}, paths: map[string][]string{}, tokens: map[string]string{},
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is one
	transport.ResponseHeaderTimeout = time.Minute
	f.client = &http.Client{Transport: transport}
	for _, s := range all {
		image := forwarded{path: s.Path, digest: digest.Digest(s.Digest)}
		top := image
		if s.Index != "" {
			top = forwarded{path: s.Path, digest: digest.Digest(s.Index), index: true}
		}
		for _, name := range s.StandsFor {
			of := repository(name)
			f.manifests[of+"@"+s.Digest] = image
			if s.Index != "" {
				f.manifests[of+"@"+s.Index] = top
			}
			if !strings.Contains(name, "@") {
				f.manifests[name] = top
			}
			if !slices.Contains(f.paths[of], s.Path) {
				f.paths[of] = append(f.paths[of], s.Path)
			}
		}
	}
	return f
}

// names are the references that it answers to.
func (f *forwarder) names() imageNames {
	names := imageNames{}
	for name, d := range f.manifests {
		names[name] = d.digest
	}
	return names
}

func (f *forwarder) handler() http.Handler { return pullHandler(f.manifest, f.blob) }

func (f *forwarder) manifest(w http.ResponseWriter, r *http.Request, of, ref string) {
	separator := ":"
	if strings.Contains(ref, ":") {
		separator = "@"
	}
	d, ok := f.manifests[of+separator+ref]
	if !ok {
		http.NotFound(w, r)
		return
	}
	b, err := f.document(r.Context(), d)
	if errors.Is(err, errNotThere) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	mediaType := ocispec.MediaTypeImageManifest
	if d.index {
		mediaType = ocispec.MediaTypeImageIndex
	}
	var head struct {
		MediaType string `json:"mediaType"`
	}
	if err := json.Unmarshal(b, &head); err == nil && head.MediaType != "" {
		mediaType = head.MediaType
	}
	serveManifest(w, r, mediaType, d.digest, b)
}

// document reads a manifest or an index from the mirror, and verifies its digest.
func (f *forwarder) document(ctx context.Context, d forwarded) ([]byte, error) {
	kind := "manifests"
	if d.index {
		kind = "blobs"
	}
	response, err := f.ask(ctx, http.MethodGet, d.path, kind+"/"+d.digest.String(), http.Header{"Accept": {
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
	var last error
	for _, path := range f.paths[of] {
		header := http.Header{}
		if ranged := r.Header.Get("Range"); ranged != "" {
			header.Set("Range", ranged)
		}
		response, err := f.ask(r.Context(), r.Method, path, "blobs/"+d, header)
		if err != nil {
			if !errors.Is(err, errNotThere) || last == nil {
				last = err
			}
			continue
		}
		defer release(response.Body)
		for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Docker-Content-Digest"} {
			if v := response.Header.Get(name); v != "" {
				w.Header().Set(name, v)
			}
		}
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body) // who asked sees that it is cut
		return
	}
	if last != nil && !errors.Is(last, errNotThere) {
		http.Error(w, last.Error(), http.StatusBadGateway)
		return
	}
	http.NotFound(w, r)
}

var errNotThere = errors.New("the mirror does not have it")

// ask sends a request to a repository of the mirror, with the token of somebody without
// an account where it wants one. An answer that is no success is an error.
func (f *forwarder) ask(ctx context.Context, method, path, what string, header http.Header) (*http.Response, error) {
	f.mu.Lock()
	token := f.tokens[path]
	f.mu.Unlock()
	address := f.base + "/" + path + "/" + what
	for try := 0; ; try++ {
		request, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return nil, err
		}
		request.Header = header.Clone()
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := f.client.Do(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode < 300 {
			return response, nil
		}
		release(response.Body)
		switch {
		case response.StatusCode == http.StatusNotFound:
			return nil, fmt.Errorf("%w: %s", errNotThere, address)
		case response.StatusCode != http.StatusUnauthorized || try > 0:
			return nil, fmt.Errorf("the mirror answers %s to %s", response.Status, address)
		}
		if token, err = f.token(ctx, response.Header.Get("WWW-Authenticate")); err != nil {
			return nil, fmt.Errorf("the mirror wants a login for %s: %w", address, err)
		}
		f.mu.Lock()
		f.tokens[path] = token
		f.mu.Unlock()
	}
}

var challengePart = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// token asks for a token without an account, as a registry's challenge says.
func (f *forwarder) token(ctx context.Context, challenge string) (string, error) {
	kind, rest, _ := strings.Cut(challenge, " ")
	if !strings.EqualFold(kind, "Bearer") {
		return "", fmt.Errorf("it asks for %q, and the node has no account", kind)
	}
	query, realm := url.Values{}, ""
	for _, m := range challengePart.FindAllStringSubmatch(rest, -1) {
		switch m[1] {
		case "realm":
			realm = m[2]
		case "service", "scope":
			query.Set(m[1], m[2])
		}
	}
	at, err := url.Parse(realm)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("%q is no address of tokens", realm)
	}
	for key, values := range at.Query() {
		query[key] = append(query[key], values...)
	}
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return "", err
	}
	defer release(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", at.Redacted(), response.Status)
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxManifest)).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Token != "" {
		return answer.Token, nil
	}
	return answer.AccessToken, nil
}
