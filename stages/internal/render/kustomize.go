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

// kustomize builds the kustomization in dir from the workspace that is made of it: kustomize
// has no way to be told not to run git or ask an address, so it reads nothing that a release
// wrote where it looks for names.
func kustomize(ctx context.Context, release fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	return bounded.Work(ctx, bounded.Usual(), func() ([]*unstructured.Unstructured, error) { return build(release, dir) })
}

func build(release fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	w := workspace{release: release, files: filesys.MakeFsInMemory()}
	if err := w.addKustomization(dir, nil); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(w.files, path.Join(workspaceRoot, legal(dir)))
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
