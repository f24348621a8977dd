package main

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// ownRegistry is where containerd asks for slipway.local when no other registry
// is named. Pods that say imagePullPolicy: Always then start without a network.
const ownRegistry = "127.0.0.1:6445"

// imageServer answers pulls of the archive's images. It is read-only.
type imageServer struct {
	archive *archive
	images  []archiveImage
}

// ServeHTTP answers GET and HEAD of /v2/, /v2/<name>/manifests/<tag or digest>
// and /v2/<name>/blobs/<digest>.
func (g *imageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	if name, ref, ok := strings.Cut(rest, "/manifests/"); ok {
		g.manifest(w, r, name, ref)
		return
	}
	if _, d, ok := strings.Cut(rest, "/blobs/"); ok {
		if blob, ok := g.archive.blob(digest.Digest(d)); ok {
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, "", time.Time{}, blob)
			return
		}
	}
	http.NotFound(w, r)
}

func (g *imageServer) manifest(w http.ResponseWriter, r *http.Request, name, ref string) {
	for _, i := range g.images {
		if repository(i.name) != registryHost+"/"+name {
			continue
		}
		// The manifest of an index is asked for by digest only.
		for _, d := range append(i.ancestors, i.descriptor) {
			top := d.Digest == i.target.Digest && i.name == registryHost+"/"+name+":"+ref
			if !top && d.Digest.String() != ref {
				continue
			}
			b, err := g.archive.read(d)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", d.MediaType)
			w.Header().Set("Docker-Content-Digest", d.Digest.String())
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
			return
		}
	}
	http.NotFound(w, r)
}
