package main

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ownRegistry is where containerd asks for the archive's images, whatever registry they
// are named after. Pods that say imagePullPolicy: Always then start without a network.
const ownRegistry = "127.0.0.1:6445"

const maxManifest = 8 << 20

// imageServer answers pulls of the archive's images. It is read-only.
type imageServer struct {
	archive      *archive
	refs         map[string]ocispec.Descriptor // by complete reference
	repositories map[string]bool
}

// newImageServer serves images of an archive by name and, in the same repository, by digest: that of
// its manifest and, if it has one, of its index. Where several have a reference, the first counts.
func newImageServer(a *archive, images []archiveImage) *imageServer {
	g := &imageServer{archive: a, refs: map[string]ocispec.Descriptor{}, repositories: map[string]bool{}}
	add := func(ref string, d ocispec.Descriptor) {
		if _, ok := g.refs[ref]; !ok {
			g.refs[ref] = d
		}
	}
	for _, i := range images {
		of := repository(i.name)
		g.repositories[of] = true
		if !strings.Contains(i.name, "@") {
			add(i.name, i.chain[0])
		}
		for _, d := range i.chain {
			add(of+"@"+d.Digest.String(), d)
		}
	}
	return g
}

func (g *imageServer) names() imageNames {
	names := imageNames{}
	for ref, d := range g.refs {
		names[ref] = d.Digest
	}
	return names
}

// pullHandler answers GET and HEAD of /v2/, /v2/<name>/manifests/<tag or digest> and
// /v2/<name>/blobs/<digest>. The query's ns is the registry that the name is of, as
// containerd puts it when it asks a mirror; without it that is slipway.local.
func pullHandler(manifest, blob func(w http.ResponseWriter, r *http.Request, repository, ref string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "this registry is read-only", http.StatusMethodNotAllowed)
			return
		}
		rest, ok := strings.CutPrefix(r.URL.Path, "/v2/")
		if !ok {
			http.NotFound(w, r)
			return
		}
		if rest == "" {
			return
		}
		host := r.URL.Query().Get("ns")
		if host == "" {
			host = registryHost
		}
		if name, ref, ok := strings.Cut(rest, "/manifests/"); ok {
			manifest(w, r, host+"/"+name, ref)
		} else if name, d, ok := strings.Cut(rest, "/blobs/"); ok {
			blob(w, r, host+"/"+name, d)
		} else {
			http.NotFound(w, r)
		}
	})
}

func (g *imageServer) handler() http.Handler { return pullHandler(g.manifest, g.blob) }

func (g *imageServer) blob(w http.ResponseWriter, r *http.Request, of, d string) {
	blob, ok := g.archive.blob(digest.Digest(d))
	if !g.repositories[of] || !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, blob)
}

func (g *imageServer) manifest(w http.ResponseWriter, r *http.Request, of, ref string) {
	d, ok := g.refs[complete(of, ref)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	b, err := g.archive.read(d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	serveManifest(w, r, d.MediaType, d.Digest, b)
}

// complete is the reference of a tag or a digest in a repository.
func complete(of, ref string) string {
	if strings.Contains(ref, ":") {
		return of + "@" + ref
	}
	return of + ":" + ref
}

func serveManifest(w http.ResponseWriter, r *http.Request, mediaType string, d digest.Digest, b []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", d.String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}
