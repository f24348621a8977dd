package postorchestrator

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestAnInstallEndsWithWhatTheReleaseTells people, and the cluster shows that it is there.
func TestAnInstallEndsWithWhatTheReleaseTells(t *testing.T) {
	const atStatus = "/api/v1/namespaces/slipway-system/configmaps/slipway-status"
	api := kubetest.Serve(t)
	env := step.NewEnv("r1", "postorchestrator/access", step.Dirs{State: t.TempDir(), Platform: t.TempDir()}, io.Discard, io.Discard)
	env.Deployment = "blue"
	for name, text := range map[string]string{
		env.Kubeconfig: fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL),
		filepath.Join(env.PlatformDir, platform.File): "apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nguidance: guidance.txt\nnamespaces: [{name: shop}]\n" +
			"components: [{name: web, kind: manifests, path: a.yaml, namespace: shop}, {name: api, kind: manifests, path: a.yaml, namespace: shop}]\n",
		filepath.Join(env.PlatformDir, "a.yaml"): "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		filepath.Join(env.PlatformDir, "guidance.txt"): "{{.Platform}} {{.Version}}, {{.Deployment}}, {{.Domain}}, {{.Scale}}, {{.AdminEmail}}{{if .Setting \"web.open\"}}, open to all{{end}}:" +
			"{{range .Components}} {{.}}{{end}}{{if .On \"api\"}}, with the API{{end}}{{range .Links}}, {{.Name}} at {{.URL}}{{end}}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	in := contract.AccessInput{Domain: "example.org", AdminEmail: "ada@example.org", Scale: "50", Disabled: []string{"api"}}
	_, err := step.Unchanged(runAccess)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange, "the cluster does not show it yet")
	require.Nil(t, api.Get(atStatus), "a look shows nothing")

	_, err = runAccess(t.Context(), env, in)
	require.NoError(t, err)
	out, err := step.Unchanged(runAccess)(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, "sample 1.0.0, blue, example.org, 50, ada@example.org: web", out.Guidance)
	data := api.Get(atStatus)["data"].(map[string]any)
	require.Equal(t, []any{"Success", "sample 1.0.0 is installed"}, []any{data["state"], data["message"]})

	// The release and its configuration are kept for the backup before an upgrade.
	in.Config = []byte(`{"scale":100}`)
	_, err = step.Unchanged(runAccess)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange, "another configuration")
	_, err = runAccess(t.Context(), env, in)
	require.NoError(t, err)
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	repo, err := backup.Open(t.Context(), env.Backend, s)
	require.NoError(t, err)
	kept, err := repo.Installed(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"sample", "1.0.0", `{"scale":100}`}, []string{kept.Platform, kept.Version, string(kept.Config)})
	archive, err := repo.Archive(t.Context(), backup.InstalledKey(kept.Digest), kept.Release)
	require.NoError(t, err)
	files, err := bounded.Unpack(archive)
	require.NoError(t, err)
	digest, err := platform.Digest(files)
	require.NoError(t, err)
	require.Equal(t, kept.Digest, digest, "byte for byte")

	links := []contract.Link{{Name: "Web", URL: "https://web.example.org"}}
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	require.NoError(t, err)
	in.Disabled, in.Settings = nil, []byte(`{"web":{"open":true}}`)
	text, err := guidance(r, "blue", in, links)
	require.NoError(t, err)
	require.Equal(t, "sample 1.0.0, blue, example.org, 50, ada@example.org, open to all: web api, with the API, Web at https://web.example.org", text)
}
