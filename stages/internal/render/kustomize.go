package render

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Kustomization returns the file that makes dir a kustomization; empty if it is none.
func Kustomization(release fs.FS, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(dir, name); isFile(release, file) {
			return file
		}
	}
	return ""
}

func isFile(release fs.FS, name string) bool {
	info, err := fs.Stat(release, name)
	return err == nil && !info.IsDir()
}

// kustomize builds the kustomization in dir. kustomize has no way to be told not to run git or ask
// an address, so it reads no name that a release wrote, only what workspace makes of it.
func kustomize(ctx context.Context, release fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	return bounded.Work(ctx, bounded.Usual(), func() ([]*unstructured.Unstructured, error) { return build(release, dir) })
}

func build(release fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	w := &workspace{FileSystem: filesys.MakeFsInMemory(), release: release, top: dir, read: map[string][]byte{}}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(w, path.Join(workspaceRoot, escape(dir)))
	if w.err != nil { // which kustomize has wrapped in what else it tried
		return nil, w.err
	}
	if err != nil {
		return nil, fmt.Errorf("build the kustomization %s: %w", dir, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build the kustomization %s: %w", dir, err)
	}
	out, err := kube.Decode(text) // kustomize's own maps have numbers of other types
	if err != nil {
		return nil, fmt.Errorf("decode the kustomization %s: %w", dir, err)
	}
	return out, nil
}
