package platform_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
)

// A component names images by short names, or as its charts do.
func TestImagesOfAComponent(t *testing.T) {
	load := func(images string) (*platform.Release, error) {
		return platform.Load(fstest.MapFS{
			platform.File: {Data: []byte("apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nnamespaces: [{name: web}]\n" +
				"components: [{name: web, kind: manifests, path: web, namespace: web, images: [" + images + "]}]\n")},
			"web/web.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")},
		})
	}
	r, err := load(`redis, "nginx:1.29", quay.io/team/web, "registry.k8s.io/a/b:v1@sha256:` + strings.Repeat("1", 64) + `"`)
	require.NoError(t, err)
	c, _ := r.Component("web")
	require.Equal(t, []string{"redis"}, c.ImageNames())
	require.Equal(t, []string{
		"docker.io/library/nginx:1.29", "quay.io/team/web:latest", "registry.k8s.io/a/b@sha256:" + strings.Repeat("1", 64),
	}, c.ImageReferences())
	for _, wrong := range []string{`""`, "Redis", `"nginx:"`, "https://quay.io/x"} {
		_, err := load(wrong)
		require.ErrorContains(t, err, "components[0].images[0]", wrong)
	}
}
