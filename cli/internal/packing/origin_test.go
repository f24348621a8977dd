package packing

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	providers "github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestWhatAnUpgradeBeganFromHasNoSecrets, or is not in the package; the run's own files are
// cleaned of what is learned from it in any case.
func TestWhatAnUpgradeBeganFromHasNoSecrets(t *testing.T) {
	for what, c := range map[string]struct {
		config, file string
		lacks        string
	}{
		"places of secrets":     {`{"apiVersion":"slipway.sh/v1","smtp":{"host":"mail.test","from":"me@mail.test","username":"me","password":"env:OLD"}}`, "plain", ""},
		"a secret, by its name": {`{"apiVersion":"slipway.sh/v1","platform":{"components":{"web":{"values":{"adminPassword":"hunter2"}}}}}`, "plain", "what looks like a secret is in its configuration (platform.components.web.values.adminPassword)"},
		"a known secret":        {`{"apiVersion":"slipway.sh/v1"}`, "a: " + canary, "a secret is in its file before/release/values.yaml"},
		"what is refused now":   {`{"apiVersion":"slipway.sh/v1","global":{"scale":-1}}`, "plain", "global.scale"},
	} {
		t.Run(what, func(t *testing.T) {
			p := packer{files: runpackage.Files{}, flags: &deployment.Flags{}, deployment: &deployment.Deployment{Config: config.Default()}}
			p.flags.Source.Program = &source.Program{Providers: providers.All()}
			p.info.Secrets = map[string]string{"smtp.password": "env:NEW"}
			p.clean.known.Add(canary)
			why, err := p.takeOrigin(&contract.Backup{Platform: "shop", From: "1.0.0", Config: []byte(c.config)},
				fstest.MapFS{"platform.yaml": {Data: []byte("name: shop\n")}, "values.yaml": {Data: []byte(c.file)}})
			require.NoError(t, err)
			if c.lacks != "" {
				require.Contains(t, why, c.lacks)
				require.Nil(t, p.info.Before)
				require.NotContains(t, p.files, "before/config.yaml")
			} else {
				require.Empty(t, why)
				require.Equal(t, []string{"smtp.password before the upgrade"}, p.absent, "another one than now")
				require.NotEmpty(t, p.info.Before.Digest)
				require.Contains(t, p.files, "before/release/values.yaml")
				require.Contains(t, string(p.files["before/config.yaml"].Data), "env:OLD")
			}
			log, err := p.clean.file("log.txt", []byte("login with hunter2"))
			require.NoError(t, err)
			require.Equal(t, what != "a secret, by its name", string(log) == "login with hunter2")
		})
	}
}
