package render

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// rewrite adds what a kustomization names, and writes the names as the workspace has them.
// TestEveryFieldOfAKustomizationIsKnown fails where kustomize gets a field that is not here.
func (k *kustomization) rewrite(c *types.Kustomization) error {
	for _, list := range [][]string{c.Resources, c.Components} {
		if err := each(list, k.source); err != nil {
			return err
		}
	}
	for _, list := range [][]string{c.Crds, c.Configurations} {
		if err := each(list, k.content); err != nil {
			return err
		}
	}
	for _, plugins := range []struct {
		field string
		list  []string
	}{{"generators", c.Generators}, {"transformers", c.Transformers}, {"validators", c.Validators}} {
		for i, entry := range plugins.list {
			var err error
			if plugins.list[i], err = k.plugins(plugins.field, i, entry); err != nil {
				return err
			}
		}
	}
	var err error
	for i, text := range c.PatchesStrategicMerge { //nolint:staticcheck // SA1019: kustomize still reads it
		name, err := k.patch("patchesStrategicMerge", i, string(text))
		if err != nil {
			return err
		}
		c.PatchesStrategicMerge[i] = types.PatchStrategicMerge(name) //nolint:staticcheck // SA1019
	}
	for _, patches := range [][]types.Patch{c.Patches, c.PatchesJson6902} { //nolint:staticcheck // SA1019
		for i := range patches {
			if patches[i].Path, err = k.optional(patches[i].Path); err != nil {
				return err
			}
		}
	}
	for i := range c.Replacements {
		if c.Replacements[i].Path, err = k.optional(c.Replacements[i].Path); err != nil {
			return err
		}
	}
	if schema, ok := c.OpenAPI["path"]; ok {
		if c.OpenAPI["path"], err = k.content(schema); err != nil {
			return err
		}
	}
	for i := range c.ConfigMapGenerator {
		if err := k.pairs(&c.ConfigMapGenerator[i].KvPairSources); err != nil {
			return err
		}
	}
	for i := range c.SecretGenerator {
		if err := k.pairs(&c.SecretGenerator[i].KvPairSources); err != nil {
			return err
		}
	}
	return nil
}

func each(names []string, add func(string) (string, error)) error {
	for i, name := range names {
		var err error
		if names[i], err = add(name); err != nil {
			return err
		}
	}
	return nil
}

func (k *kustomization) optional(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	return k.content(name)
}

// pairs are those of a generator; FixKustomization has moved EnvSource to EnvSources.
func (k *kustomization) pairs(p *types.KvPairSources) error {
	if err := each(p.EnvSources, k.content); err != nil {
		return err
	}
	return each(p.FileSources, k.keyed)
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

// patch is a file, or the patch itself.
func (k *kustomization) patch(field string, index int, text string) (string, error) {
	if _, _, err := k.find(text); err == nil {
		return k.content(text)
	}
	if _, err := kube.Decode([]byte(text)); err != nil {
		return "", k.unknown(text)
	}
	return k.inline(field, index, []byte(text))
}

// plugins are the generators, transformers or validators in a file, or the entry itself.
func (k *kustomization) plugins(field string, index int, entry string) (string, error) {
	text, in := []byte(entry), k.file
	_, _, unknown := k.find(entry)
	if unknown == nil {
		var err error
		if text, in, err = k.read(entry); err != nil {
			return "", err
		}
	}
	objs, err := kube.Decode(text)
	if err != nil && unknown != nil {
		return "", k.unknown(entry)
	}
	if err != nil {
		return "", fmt.Errorf("decode %s: %w", in, err)
	}
	var out [][]byte
	for i, o := range objs {
		if err := k.plugin(fmt.Sprintf("%s-%d-%d", field, index, i), in, o); err != nil {
			return "", err
		}
		b, err := o.MarshalJSON() // so that kustomize reads what has been looked at here
		if err != nil {
			return "", fmt.Errorf("encode %s of %s: %w", o.GetName(), in, err)
		}
		out = append(out, b)
	}
	return k.inline(field, index, bytes.Join(out, []byte("\n---\n")))
}

// plugin writes the names in the configuration of a generator or transformer anew. Only those
// that are part of kustomize and run no program are taken. kustomize takes keys in upper and
// lower case for the same.
func (k *kustomization) plugin(field, file string, o *unstructured.Unstructured) error {
	kind := o.GetKind()
	if o.GetAPIVersion() != konfig.BuiltinPluginApiVersion || kind == "HelmChartInflationGenerator" || !slices.Contains(krusty.GetBuiltinPluginNames(), kind) {
		return fmt.Errorf("%s: %s %s is a plugin that kustomize would run; use those of apiVersion builtin other than HelmChartInflationGenerator", file, kind, o.GetName())
	}
	for key, value := range o.Object {
		var err error
		switch {
		case isKey(key, "path", "targetFilePath", "env"):
			o.Object[key], err = k.text(value, k.optional)
		case isKey(key, "envs"):
			err = k.list(value, k.content)
		case isKey(key, "files"):
			err = k.list(value, k.keyed)
		case isKey(key, "paths"):
			index := -1
			err = k.list(value, func(text string) (string, error) {
				index++
				return k.patch(field, index, text)
			})
		case isKey(key, "replacements"):
			err = k.replacements(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isKey(key string, of ...string) bool {
	return slices.ContainsFunc(of, func(name string) bool { return strings.EqualFold(key, name) })
}

func (k *kustomization) text(value any, add func(string) (string, error)) (any, error) {
	name, ok := value.(string)
	if value != nil && !ok {
		return nil, k.unknown(fmt.Sprint(value))
	}
	return add(name)
}

func (k *kustomization) list(value any, add func(string) (string, error)) error {
	list, ok := value.([]any)
	if value != nil && !ok {
		return k.unknown(fmt.Sprint(value))
	}
	for i := range list {
		var err error
		if list[i], err = k.text(list[i], add); err != nil {
			return err
		}
	}
	return nil
}

// replacements are those of a ReplacementTransformer.
func (k *kustomization) replacements(value any) error {
	list, _ := value.([]any) // kustomize decodes nothing else
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		for key := range fields {
			if !isKey(key, "path") {
				continue
			}
			var err error
			if fields[key], err = k.text(fields[key], k.optional); err != nil {
				return err
			}
		}
	}
	return nil
}
