package all_test

import (
	"bytes"
	"log"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/all"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// TestWhatLibrariesLogIsNotShown has a kustomization of which kustomize logs a name as it is.
func TestWhatLibrariesLogIsNotShown(t *testing.T) {
	before := log.Writer()
	t.Cleanup(func() { log.SetOutput(before) })
	var logged bytes.Buffer
	log.SetOutput(&logged)
	release := fstest.MapFS{
		"m/a.yaml":             {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")},
		"m/kustomization.yaml": {Data: []byte(`{resources: [a.yaml], vars: [{name: "V\e[31m", objref: {apiVersion: v1, kind: ConfigMap, name: a}}]}`)},
	}
	build := func() {
		_, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "m"})
		require.NoError(t, err)
	}
	build()
	require.Contains(t, logged.String(), "\x1b[31m")
	logged.Reset()
	all.All(nil)
	build()
	require.Empty(t, logged.String())
}
