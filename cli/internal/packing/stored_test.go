package packing

import (
	"crypto/ed25519"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// TestAStoredConfigurationRunsNothing: others may write where it is. Of its secrets only those are
// looked for that the user's configuration names, too.
func TestAStoredConfigurationRunsNothing(t *testing.T) {
	t.Setenv(usage.EnvModule, "")
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
	p.flags.Source.Program = &source.Program{Providers: providers.All()}
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

// TestAStoredConfigurationNamesNoRelease that the user's does not: directories would be uploaded,
// and servers asked.
func TestAStoredConfigurationNamesNoRelease(t *testing.T) {
	const repository = "https://git.example.org/team/platform.git//shop@"
	for stored, may := range map[string]map[string]bool{
		"/home/operator/":               {"1.0.0": false, "./mine": false, repository + "v1": false, "/home/operator/": true},
		"./mine":                        {"./mine": true, "./mine2": false},
		"1.0.0":                         {"1.1.0": true, "./mine": true, repository + "v1": true},
		repository + "v2":               {repository + "v1": true, repository + "v2": true, "1.0.0": false, "./mine": false, "https://git.example.org/team/platform.git@v2": false},
		"https://evil.example/x.git@v1": {repository + "v1": false},
		"ssh://git@git.example.org/team/platform.git@v1": {"https://git.example.org/team/platform.git@v1": false},
	} {
		for users, want := range may {
			p := packer{flags: &deployment.Flags{}, config: config.Default(), record: &report.Run{ID: "r1", Platform: report.Platform{Digest: "sha256:1"}}}
			p.deployment = &deployment.Deployment{Config: config.Default(), Session: &session.Session{}}
			p.config.Platform.Release, p.deployment.Config.Platform.Release = stored, users
			require.Equal(t, want, p.mayOpen(), "%s, and the user's %s", stored, users)
			if !want {
				err := p.release(t.Context(), t.TempDir())
				require.ErrorIs(t, err, &fault.Fault{Code: codeOtherRelease})
				require.ErrorContains(t, err, "neither read nor fetched")
				p.flags.Release.Dir = "named"
				require.True(t, p.mayOpen())
			}
		}
	}
}

// TestAKeySignsOnlyWhatIsTheUsers: a signature vouches for commands, too.
func TestAKeySignsOnlyWhatIsTheUsers(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	dir := t.TempDir()
	p := packer{files: runpackage.Files{}, flags: &deployment.Flags{}, options: Options{Key: key}}
	p.flags.Source.State = "s3://mine?region=eu-central-1"
	p.flags.Source.Program = &source.Program{Providers: providers.All(), Stores: buckets.All()}
	users, err := p.flags.Source.Parse([]byte("apiVersion: slipway.sh/v1\nhooks: [{name: a, before: workflow, run: ['true']}]\n"), nil)
	require.NoError(t, err)
	p.deployment = &deployment.Deployment{Config: users, Inputs: deployment.Inputs{Secrets: noSecrets{}}}
	sign := func(stored string) error {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(`{"apiVersion":"slipway.sh/v1",`+stored+`}`), 0o600))
		_, err := p.readConfig(t.Context(), "r1", dir)
		require.NoError(t, err)
		return p.vouch("r1")
	}
	const same = `"hooks":[{"name":"a","before":"workflow","run":["true"]}],"state":{"url":"s3://mine?region=eu-central-1"}`
	require.NoError(t, sign(same))
	require.NoError(t, sign(same+`,"global":{"domain":"a.test"}`))
	for stored, says := range map[string]string{
		same + `,"smtp":{"host":"a","from":"a@a.test","username":"a","password":"cmd:evil"}`: "smtp.password",
		same + `,"platform":{"release":"/home/operator/"}`:                                   "platform.release",
		`"hooks":[{"name":"a","before":"workflow","run":["evil"]}]`:                          "hook a",
		`"state":{"url":"s3://evil?region=eu-central-1"}`:                                    "state.url",
	} {
		err := sign(stored)
		require.ErrorIs(t, err, &fault.Fault{Code: codeOtherRelease}, stored)
		require.ErrorContains(t, err, "has what yours has not: "+says)
	}
	p.options.Key = nil
	require.NoError(t, sign(`"state":{"url":"s3://evil?region=eu-central-1"}`))
}

type noSecrets struct{ secrets.Source }

// TestAStoredConfigurationOpensNoRelease for the names of steps, around which its hooks are.
func TestAStoredConfigurationOpensNoRelease(t *testing.T) {
	dir := t.TempDir()
	stored := `{"apiVersion":"slipway.sh/v1","platform":{"release":"/home/operator/"},"hooks":[{"name":"a","before":"orchestrator/web","run":["true"]}]}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(stored), 0o600))
	p := packer{files: runpackage.Files{}, flags: &deployment.Flags{}, deployment: &deployment.Deployment{Config: config.Default()}}
	p.flags.Source.Program = &source.Program{Providers: providers.All()}
	p.flags.Source.Release = func(*config.Config) *platform.Release { t.Error("the release is opened"); return nil }
	_, _ = p.readConfig(t.Context(), "r1", dir) // what is wrong with it is not this test's
}

// TestOfAKubeconfigOnlySecretsAreHidden: its lines are in other files, too.
func TestOfAKubeconfigOnlySecretsAreHidden(t *testing.T) {
	var c cleaner
	c.learn("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://a.test'}}]\nusers: [{name: u, user: {token: " + canary + ", client-key-data: aHVudGVyMmh1bnRlcjI=}}]\n")
	require.Equal(t, "apiVersion: v1\nkind: Config\n*** *** https://a.test", c.text("apiVersion: v1\nkind: Config\n"+canary+" hunter2hunter2 https://a.test"))
	c.learn("plain: hunter3")
	require.Equal(t, "***", c.text("plain: hunter3"))
}
