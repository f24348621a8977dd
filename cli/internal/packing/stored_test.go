package packing

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// TestAStoredConfigurationRunsNothing: others may write where it is. Of its secrets only those are
// looked for that the user's configuration names, too.
func TestAStoredConfigurationRunsNothing(t *testing.T) {
	t.Setenv(module.Env, "")
	engine := httptest.NewServer(http.NotFoundHandler())
	defer engine.Close()
	_, port, err := net.SplitHostPort(engine.Listener.Addr().String())
	require.NoError(t, err)
	t.Setenv("DAGGER_SESSION_PORT", port)
	t.Setenv("DAGGER_SESSION_TOKEN", "x")
	client, err := dagger.Connect(t.Context())
	require.NoError(t, err)

	dir := t.TempDir()
	ran, mine := filepath.Join(dir, "ran"), filepath.Join(dir, "mine")
	stored := `{"apiVersion":"slipway.sh/v1","provider":"existing","existing":{"kubeconfig":"cmd:touch ` + ran + `; echo x"},` +
		`"platform":{"release":"1.0.0","secrets":{"a":"cmd:touch ` + ran + `; echo x","b":"cmd:touch ` + mine + `; echo x"}}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(stored), 0o600))
	p := packer{files: runpackage.Files{}, flags: &deployment.Flags{}}
	p.flags.Source.Providers = providers.All()
	cfg := config.Default()
	cfg.Platform.Secrets = map[string]config.SecretRef{"b": config.SecretRef("cmd:touch " + mine + "; echo x")}
	p.deployment = &deployment.Deployment{Config: cfg, Inputs: deployment.Inputs{Secrets: &secrets.Finder{Client: client}}}
	_, err = p.readConfig(t.Context(), "r1", dir)
	require.NoError(t, err)
	require.NoFileExists(t, ran)
	require.FileExists(t, mine, "the user's own")
	require.Subset(t, p.absent, []string{"existing.kubeconfig", "platform.secrets.a"})
	require.Contains(t, p.info.Secrets, "existing.kubeconfig", "the index lists what the same walk finds")
}

// TestOfAKubeconfigOnlySecretsAreHidden: its lines are in other files, too.
func TestOfAKubeconfigOnlySecretsAreHidden(t *testing.T) {
	var c cleaner
	c.learn("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://a.test'}}]\nusers: [{name: u, user: {token: " + canary + ", client-key-data: aHVudGVyMmh1bnRlcjI=}}]\n")
	require.Equal(t, "apiVersion: v1\nkind: Config\n*** *** https://a.test", c.text("apiVersion: v1\nkind: Config\n"+canary+" hunter2hunter2 https://a.test"))
	c.learn("plain: hunter3")
	require.Equal(t, "***", c.text("plain: hunter3"))
}
