package render

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Kustomization returns the file that makes dir a kustomization; empty if it is none.
func Kustomization(release fs.FS, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(dir, name); IsFile(release, file) {
			return file
		}
	}
	return ""
}

// IsFile reports whether a name leads to a file.
func IsFile(release fs.FS, name string) bool {
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

// rewrite returns a kustomization in which every name begins with "./" and is the name of a file or
// directory of the release. kustomize takes no such name for an address or a repository, which it
// would fetch by HTTP or by running git with what stands in the name.
// TestEveryFieldOfAKustomizationIsKnown fails where kustomize gets a field that is not here.
func (w *workspace) rewrite(file string, text []byte) ([]byte, error) {
	if w.kustomizations++; w.kustomizations > maxKustomizations {
		return nil, fmt.Errorf("%s is made of more than %d kustomizations", w.top, maxKustomizations)
	}
	k := kustomization{release: w.release, file: file, dir: path.Dir(file)}
	var c types.Kustomization
	if err := c.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("decode %s: %w", file, err)
	}
	c.FixKustomization() // moves deprecated fields to those that take their place
	if err := c.CheckEmpty(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(c.HelmCharts) > 0 || c.HelmGlobals != nil {
		return nil, fmt.Errorf("%s has helmCharts, for which kustomize runs Helm; make the chart a component of kind chart", file)
	}
	if len(c.Generators)+len(c.Transformers)+len(c.Validators) > 0 {
		return nil, fmt.Errorf("%s has generators, transformers or validators, which kustomize may run as programs; use its other fields, such as configMapGenerator, labels and patches", file)
	}
	if err := k.names(&c); err != nil {
		return nil, err
	}
	if c.MetaData == nil {
		c.MetaData = &types.ObjectMeta{} // with lists without entries it would count as empty
	}
	out, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", file, err)
	}
	return out, nil
}

func (k *kustomization) names(c *types.Kustomization) error {
	names := func(lists ...[]string) (out []*string) {
		for _, list := range lists {
			for i := range list {
				out = append(out, &list[i])
			}
		}
		return out
	}
	files, pairs := names(c.Crds, c.Configurations), []*string{}
	for _, patches := range [][]types.Patch{c.Patches, c.PatchesJson6902} { //nolint:staticcheck // SA1019: kustomize still reads it
		for i := range patches {
			files = append(files, &patches[i].Path)
		}
	}
	for i := range c.Replacements {
		files = append(files, &c.Replacements[i].Path)
	}
	var generators []*types.KvPairSources // FixKustomization has moved EnvSource to EnvSources
	for i := range c.ConfigMapGenerator {
		generators = append(generators, &c.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range c.SecretGenerator {
		generators = append(generators, &c.SecretGenerator[i].KvPairSources)
	}
	for _, g := range generators {
		files, pairs = append(files, names(g.EnvSources)...), append(pairs, names(g.FileSources)...)
	}
	schema := c.OpenAPI["path"]
	for _, of := range []struct {
		names []*string
		add   func(string) (string, error)
	}{{names(c.Resources, c.Components), k.source}, {append(files, &schema), k.optional}, {pairs, k.keyed}} {
		for _, name := range of.names {
			var err error
			if *name, err = of.add(*name); err != nil {
				return err
			}
		}
	}
	if schema != "" {
		c.OpenAPI["path"] = schema
	}
	// An entry of patchesStrategicMerge may be a name or a patch: kustomize asks an address of that
	// name as soon as it cannot decode the text. patches tells them apart.
	var patches []types.Patch
	for _, entry := range c.PatchesStrategicMerge { //nolint:staticcheck // SA1019
		text := string(entry)
		if _, err := k.find(text); err == nil {
			name, err := k.content(text)
			if err != nil {
				return err
			}
			patches = append(patches, types.Patch{Path: name})
		} else if _, err := kube.Decode([]byte(text)); err != nil {
			return k.unknown(text)
		} else {
			patches = append(patches, types.Patch{Patch: text})
		}
	}
	c.Patches, c.PatchesStrategicMerge = append(patches, c.Patches...), nil //nolint:staticcheck // SA1019
	return nil
}

func (k *kustomization) optional(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	return k.content(name)
}

// keyed is "path" or "key=path".
func (k *kustomization) keyed(source string) (string, error) {
	key, name, ok := strings.Cut(source, "=")
	if !ok {
		key, name = path.Base(source), source // kustomize would take the name that the workspace has
	}
	name, err := k.content(name)
	return key + "=" + name, err
}
