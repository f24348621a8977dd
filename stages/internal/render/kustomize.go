package render

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Kustomization returns the file that makes dir a kustomization; empty if it is none.
func Kustomization(release fs.FS, dir string) string {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
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

// kustomize builds the kustomization in dir. It sees the release's files and nothing else.
func kustomize(release fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	if err := sealed(release, dir, map[string]bool{}); err != nil {
		return nil, err
	}
	mem := filesys.MakeFsInMemory()
	err := fs.WalkDir(release, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := fs.ReadFile(release, name)
		if err != nil {
			return err
		}
		return mem.WriteFile(path.Join("/release", name), b)
	})
	if err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(mem, path.Join("/release", dir))
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

// sealed makes sure that the kustomization in dir, and those that it is made of, name only
// files and directories of the release: kustomize would fetch the others from where their
// addresses say. seen are the directories that have been looked at.
func sealed(release fs.FS, dir string, seen map[string]bool) error {
	file := Kustomization(release, dir)
	if file == "" || seen[dir] {
		return nil
	}
	seen[dir] = true
	text, err := fs.ReadFile(release, file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	var k types.Kustomization
	if err := yaml.Unmarshal(text, &k); err != nil {
		return fmt.Errorf("decode %s: %w", file, err)
	}
	for _, name := range sources(k) {
		at := path.Join(dir, name)
		if info, err := fs.Stat(release, at); err != nil {
			return fmt.Errorf("%s names %s, which is no file or directory of the release", file, name)
		} else if !info.IsDir() {
			continue
		}
		if err := sealed(release, at, seen); err != nil {
			return err
		}
	}
	return nil
}

// sources are the files and directories that a kustomization names, in deprecated fields,
// too: kustomize reads them.
//
//nolint:staticcheck // SA1019
func sources(k types.Kustomization) []string {
	out := slices.Concat(k.Resources, k.Components, k.Bases, k.Crds, k.Configurations, k.Generators, k.Transformers, k.Validators)
	for _, p := range k.PatchesStrategicMerge {
		out = append(out, string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) {
		out = append(out, p.Path)
	}
	for _, r := range k.Replacements {
		out = append(out, r.Path)
	}
	out = append(out, k.OpenAPI["path"])
	var generated []types.KvPairSources
	for _, m := range k.ConfigMapGenerator {
		generated = append(generated, m.KvPairSources)
	}
	for _, s := range k.SecretGenerator {
		generated = append(generated, s.KvPairSources)
	}
	for _, g := range generated {
		out = append(append(out, g.EnvSources...), g.EnvSource)
		for _, f := range g.FileSources { // "path" or "key=path"
			out = append(out, f[strings.IndexByte(f, '=')+1:])
		}
	}
	return slices.DeleteFunc(out, func(name string) bool {
		return name == "" || strings.ContainsAny(name, "\n{") // an object in place of a file
	})
}
