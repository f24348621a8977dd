package platform_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

// TestAConfigurationOfAnOlderRelease is refused with what changed and the command that
// migrates it, also where only the version was changed in it.
func TestAConfigurationOfAnOlderRelease(t *testing.T) {
	r, err := platform.Load(fstest.MapFS{
		platform.File: {Data: []byte(`apiVersion: slipway/v2
name: shop
version: 2.1.0
namespaces: [{name: demo}]
components: [{name: search, kind: manifests, path: a.yaml, namespace: demo}]
settings: s.json
configuration:
  - {version: 2.0.0, move: {platform.components.finder: platform.components.search}, remove: [platform.components.old]}
  - {version: 2.1.0, remove: [platform.settings.color]}
`)},
		"a.yaml": {Data: []byte("a: b")}, "s.json": {Data: []byte(`{"type": "object"}`)},
	})
	require.NoError(t, err)
	for platformOf, says := range map[string]string{
		`release: 1.0.0, components: {finder: {enabled: false}}`:  "since 2.0.0, platform.components.finder is now platform.components.search",
		`release: 2.1.0, components: {finder: {enabled: false}}`:  "since 2.0.0, platform.components.finder is now platform.components.search",
		`release: ./mine, components: {finder: {enabled: false}}`: "since 2.0.0, platform.components.finder is now platform.components.search",
		`components: {old: {enabled: false}}`:                     "since 2.0.0, platform.components.old is gone",
		`release: 2.0.0, settings: {color: red}`:                  "since 2.1.0, platform.settings.color is gone",
		`release: 2.1.0, settings: {color: red}`:                  "", // which the release takes, whatever it means there
		`settings: {color: red}`:                                  "",
		`release: 1.0.0, components: {search: {enabled: false}}`:  "",
	} {
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {"+platformOf+"}\n"), config.Options{DefaultProvider: "local"})
		require.NoError(t, err)
		err = r.Fits(cfg)
		if says == "" {
			require.NoError(t, err, platformOf)
			continue
		}
		require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeOutdated}, platformOf)
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, says)
	}
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {components: {other: {enabled: false}}}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.ErrorIs(t, r.Fits(cfg), &fault.Fault{Code: platform.CodeUnfit})
	require.Len(t, r.Since("1.0.0"), 2)
	require.Len(t, r.Since("2.0.0"), 1)
	require.Empty(t, r.Since("2.1.0"))
	require.Len(t, r.Since(""), 2)
}
