package config_test

import (
	"encoding/json"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	providers "github.com/slipway-sh/slipway/providers/all"
)

func TestVariable(t *testing.T) {
	for path, want := range map[string]string{
		"provider":                              "PROVIDER",
		"apiVersion":                            "API_VERSION",
		"global.name":                           "GLOBAL_NAME",
		"aws.vpcId":                             "AWS_VPC_ID",
		"aws.vpcID":                             "AWS_VPC_ID",
		"proxy.noProxy":                         "PROXY_NO_PROXY",
		"jumpHost.allow":                        "JUMP_HOST_ALLOW",
		"tls.ca":                                "TLS_CA",
		"a.httpURLPrefix2x":                     "A_HTTP_URL_PREFIX2X",
		"hooks[0].name":                         "HOOKS_0_NAME",
		"platform.settings.größe":               "PLATFORM_SETTINGS_GR_E",
		"platform.components.data-base.enabled": "PLATFORM_COMPONENTS_DATA_BASE_ENABLED",
	} {
		require.Equal(t, "SLIPWAY_CONFIG_"+want, config.EnvName(path), path)
	}
}

// Every field of every provider has a variable of its own, and none that means
// something else.
func TestVariablesAreUnique(t *testing.T) {
	text, err := config.Schema(providers.All().Sections())
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &schema))
	paths := map[string]string{config.EnvFolder: "the folder with the deployments"}
	var walk func(path string, s *jsonschema.Schema)
	walk = func(path string, s *jsonschema.Schema) {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			field := p.Key
			if path != "" {
				field = path + "." + p.Key
			}
			name := config.EnvName(field)
			require.Empty(t, paths[name], "%s is the variable of %s", name, field)
			require.Regexp(t, `^[A-Z][A-Z0-9_]*$`, name)
			paths[name] = field
			for _, in := range []*jsonschema.Schema{p.Value, p.Value.Items, p.Value.AdditionalProperties} {
				if in != nil && in.Properties != nil {
					walk(field, in)
				}
			}
		}
	}
	walk("", &schema)
	require.Greater(t, len(paths), 60)
	require.Contains(t, paths, "SLIPWAY_CONFIG_AWS_JUMP_HOST_ALLOW")
}
