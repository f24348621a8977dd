package render

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// rewrite adds what a kustomization names, and writes the names as the workspace has them.
// TestEveryFieldOfAKustomizationIsKnown fails where kustomize gets a field that is not here.
func (k *kustomization) rewrite(c *types.Kustomization) error {
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
	for _, of := range []struct {
		names []*string
		add   func(string) (string, error)
	}{{names(c.Resources, c.Components), k.source}, {files, k.optional}, {pairs, k.keyed}} {
		for _, name := range of.names {
			var err error
			if *name, err = of.add(*name); err != nil {
				return err
			}
		}
	}
	for i, text := range c.PatchesStrategicMerge { //nolint:staticcheck // SA1019
		name, err := k.patch(i, string(text))
		if err != nil {
			return err
		}
		c.PatchesStrategicMerge[i] = types.PatchStrategicMerge(name) //nolint:staticcheck // SA1019
	}
	schema, err := k.optional(c.OpenAPI["path"])
	if schema != "" {
		c.OpenAPI["path"] = schema
	}
	return err
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

// patch is a file, or the patch itself. kustomize would look for a file or an address of that name
// as soon as it cannot decode the text, so that it becomes a file.
func (k *kustomization) patch(index int, text string) (string, error) {
	if _, _, err := k.find(text); err == nil {
		return k.content(text)
	}
	if _, err := kube.Decode([]byte(text)); err != nil {
		return "", k.unknown(text)
	}
	name := fmt.Sprintf("slipway-patch-%d.yaml", index)
	for isFile(k.release, path.Join(k.dir, name)) {
		name = "_" + name
	}
	return "./" + name, k.write(path.Join(k.dir, name), []byte(text))
}
