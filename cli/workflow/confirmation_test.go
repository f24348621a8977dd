package workflow

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// TestWhatAReleaseAsks names where it goes and what is made, without what is switched off.
func TestWhatAReleaseAsks(t *testing.T) {
	text := `apiVersion: slipway/v2
name: shop
version: 1.0.0
approval: approval.txt
namespaces: [{name: shop}]
components:
  - {name: web, kind: manifests, path: web.yaml, namespace: shop}
  - {name: search, kind: manifests, path: web.yaml, namespace: shop, enabled: false}
`
	files := fstest.MapFS{
		"platform.yaml": {Data: []byte(text)}, "web.yaml": {Data: []byte("{}")},
		"approval.txt": {Data: []byte("{{.Platform}} {{.Version}} on {{.Cluster}} ({{.Provider}}{{with .Region}}, {{.}}{{end}}):{{range .Components}} {{.}}{{end}} at {{.Setting \"web.port\"}}\n")},
	}
	release, err := platform.Load(files)
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Provider, cfg.Platform.Settings = local.Name, []byte(`{"web":{"port":8443}}`)
	got, err := approvalText(&conductor.Options{Config: cfg, Release: release, Provider: local.Provider{}})
	require.NoError(t, err)
	require.Equal(t, "shop 1.0.0 on a Kubernetes of its own, "+cfg.Global.Name+", on the machine of the Dagger engine (local): web at 8443", got)

	delete(files, "approval.txt")
	_, err = platform.Load(files)
	require.ErrorContains(t, err, "approval")
}

// TestWhatTheCommandLineAgreesToIsNoted: a plan says more than a yes, and what was answered on a
// terminal more than both.
func TestWhatTheCommandLineAgreesToIsNoted(t *testing.T) {
	require.Nil(t, (&approval{}).record())
	given := (&approval{yes: true}).record()
	require.Equal(t, report.ByYes, given.How)
	require.WithinDuration(t, time.Now(), given.Answered, time.Minute)
	require.Zero(t, given.Asked)
	given = (&approval{yes: true, digest: "sha256:00"}).record()
	require.Equal(t, []any{report.ByDigest, "sha256:00"}, []any{given.How, given.Digest})
	said := &report.Approval{How: report.OnTerminal}
	require.Same(t, said, (&approval{yes: true, answer: said}).record())
}

// TestNobodyToAskIsNoConsent: an install that its release asks about needs an answer.
func TestNobodyToAskIsNoConsent(t *testing.T) {
	streams := console.Streams{In: strings.NewReader("y\n")}
	for _, c := range []struct {
		o      installOptions
		agreed bool
	}{
		{installOptions{}, true}, // the release does not ask
		{installOptions{notice: "All of it?", approval: approval{yes: true}}, true},
		{installOptions{notice: "All of it?", approval: approval{digest: "sha256:00"}}, true},
		{installOptions{notice: "All of it?"}, false},
	} {
		agreed, err := c.o.agree(t.Context(), streams, nil)
		require.Equal(t, c.agreed, agreed)
		if !c.agreed {
			require.ErrorIs(t, err, &fault.Fault{Code: codeNotAgreed})
			require.ErrorContains(t, err, "All of it?")
			require.Equal(t, fault.Usage, fault.ClassOf(err))
		} else {
			require.NoError(t, err)
		}
	}
}
