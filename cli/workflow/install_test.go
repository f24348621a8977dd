package workflow

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
	providers "github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/incontainer"
)

// TestInstallReadsTheReleaseFirst: what validate says of its files, an install says before
// anything starts.
func TestInstallReadsTheReleaseFirst(t *testing.T) {
	p := &source.Program{Providers: providers.All(), Contents: incontainer.Contents}
	pins, err := lock.Load()
	require.NoError(t, err)
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for _, i := range pins.Images {
		index.Images = append(index.Images, bundle.Image{Name: i.Name, Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Digest: "sha256:" + strings.Repeat("a", 64), StandsFor: i.StandsFor})
	}
	look := func(t *testing.T, dir string, o installOptions) (told string, err error) {
		t.Helper()
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"), providers.All().Options())
		require.NoError(t, err)
		r, err := platform.Load(os.DirFS("../testdata/broken/" + dir))
		require.NoError(t, err)
		provider, err := p.Providers.Get(cfg.Provider)
		require.NoError(t, err)
		o.deployment.Source.Program = p
		var screen bytes.Buffer
		err = o.checkRelease(t.Context(), console.Streams{Err: progress.Open(&screen, progress.Options{})}, &conductor.Options{Config: cfg, Provider: provider, Release: r, Images: containers.Describe(&bundle.Bundle{Index: index})})
		return screen.String(), err
	}
	for dir, c := range map[string]struct {
		codes []fault.Code
		says  string
	}{
		"manifests":           {[]fault.Code{contract.CodeUnusable}, "8 problems"},
		"charts":              {[]fault.Code{contract.CodeUnusable}, "12 problems"},
		"namespace-not-there": {[]fault.Code{contract.CodeUnusable}, "the Deployment a is in the namespace elsewhere"},
		"gate-on-nothing":     {[]fault.Code{contract.CodeUnusable}, "component web (platform.yaml, line 12): gate rollout of apps/v1/Deployment shop/weg: no component has the Deployment shop/weg"},
		"many":                {[]fault.Code{contract.CodeUnusable, contract.CodeNoImage}, "1 image is not there"},
	} {
		_, err := look(t, dir, installOptions{})
		require.ErrorContains(t, err, c.says)
		for _, code := range c.codes {
			require.ErrorIs(t, err, &fault.Fault{Code: code}, dir)
		}
	}
	_, err = look(t, "gate-on-nothing", installOptions{known: true})
	require.NoError(t, err, "a rollback goes back to it all the same")
	told, err := look(t, "only-the-cluster-knows", installOptions{})
	require.NoError(t, err)
	require.Contains(t, told, "the images of asks are not known before the install: ")
}

// Who lacks a secret of a step is told of those of the hooks, too: they come from the same
// place.
func TestSecretsThatAreMissingAreReportedTogether(t *testing.T) {
	cfg := config.Default()
	cfg.SMTP.Password = "env:SLIPWAY_TEST_NO_SMTP"
	hook := func(name, variable string) config.Hook {
		return config.Hook{Name: name, Before: "workflow", Workflows: []string{config.Install}, Secrets: map[string]config.SecretRef{"TOKEN": config.SecretRef("env:" + variable)}}
	}
	cfg.Hooks = []config.Hook{hook("login", "SLIPWAY_TEST_NO_TOKEN"), hook("other", "SLIPWAY_TEST_OTHER")}
	cfg.Hooks[1].Workflows = []string{config.Destroy}
	finder := &secrets.Finder{}
	c := &conductor.Options{Config: cfg, Secret: func(ref config.SecretRef) (*dagger.Secret, error) { return finder.Find(t.Context(), ref) }}
	from := deployment.Inputs{Secrets: finder, Workflow: config.Install}
	err := (&installOptions{}).findSecrets(t.Context(), c, from)
	require.EqualError(t, err, "find smtp.password: the environment variable SLIPWAY_TEST_NO_SMTP is not set or is empty\n"+
		"find the secret TOKEN of the hook login: the environment variable SLIPWAY_TEST_NO_TOKEN is not set or is empty")
	require.Equal(t, fault.Usage, fault.ClassOf(err))
}
