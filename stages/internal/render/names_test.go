package render_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// Names of files that a disk takes work wherever a kustomization may name a file or directory.
func TestNamesOfFilesOfAKustomization(t *testing.T) {
	for _, odd := range []string{"a+b", "my file", "größe", "~home", "(copy)", "a..b", "a,b=c", "a@b", "100%25", "_x", "..."} {
		release := files(map[string]string{
			odd + "/web/" + odd + ".yaml":               configMap("a"),
			odd + "/web/" + odd + "/" + odd + ".yaml":   configMap("b"),
			odd + "/web/" + odd + "/kustomization.yaml": "resources: ['" + odd + ".yaml']",
			odd + "/web/" + odd + ".patch":              "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {patched: 'yes'}}",
			odd + "/web/" + odd + ".env":                "A=b\n",
			odd + "/web/notes.txt":                      "read me\n",
			odd + "/web/" + odd + ".txt":                "read this\n",
			odd + "/web/kustomization.yaml": `
resources: ['` + odd + `.yaml', '` + odd + `']
patches: [{path: '` + odd + `.patch'}]
configMapGenerator:
  - {name: c, files: [notes.txt, 'key=` + odd + `.txt'], envs: ['` + odd + `.env'], options: {disableNameSuffixHash: true}}
`})
		objs, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: path.Join(odd, "web")})
		require.NoError(t, err, odd)
		require.Equal(t, []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c"}, named(objs), odd)
		require.Equal(t, map[string]any{"patched": "yes"}, objs[0].Object["data"], odd)
		require.Equal(t, map[string]any{"notes.txt": "read me\n", "key": "read this\n", "A": "b"}, objs[2].Object["data"], odd)
	}
	objs, err := render.Manifests(t.Context(), files(map[string]string{
		"web/a+b.txt": "x", "web/kustomization.yaml": "configMapGenerator: [{name: c, files: ['a+b.txt']}]",
	}), nil, platform.Component{Path: "web"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a+b.txt": "x"}, objs[0].Object["data"], "the key is the file's name")
}
