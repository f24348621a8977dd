package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidateAsksThePlatformToo(t *testing.T) {
	for text, says := range map[string]string{
		"platform: {release: 9.9.9}\n": "PLT-006", "platform: {release: ./nowhere}\n": "CFG-004", "platform: {components: {databse: {enabled: false}}}\n": "PLT-003",
		"platform: {components: {database: {enabled: false}}}\n": "PLT-010", "platform: {settings: {a: 1}}\n": "PLT-009",
	} {
		code, _, errs := slipway("validate", "--config", configFile(t, "apiVersion: slipway.sh/v1\n"+text))
		require.Equal(t, 2, code, text)
		require.Contains(t, errs, says)
	}
}

func TestAConfigurationThatCannotBeRead(t *testing.T) {
	for what, path := range map[string]string{"no file": "/does/not/exist.yaml", "a directory": t.TempDir()} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway("validate", "--config", path)
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, "CFG-003")
			require.Contains(t, errs, path)
		})
	}
}
