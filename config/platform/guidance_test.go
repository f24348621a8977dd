package platform_test

import (
	"testing"
	"testing/fstest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/stretchr/testify/require"
)

func TestGuidance(t *testing.T) {
	fsys := tree(good + "guidance: guidance.txt\n")
	fsys["guidance.txt"] = &fstest.MapFile{Data: []byte("{{.Deployment}} on {{.Domain}}:{{range .Links}} {{.Name}} at {{.URL}}{{end}}{{if .On \"web\"}}, with web{{end}}\n")}
	r, err := platform.Load(fsys)
	require.NoError(t, err)
	text, err := r.Guide(platform.GuidanceData{Deployment: "blue", Domain: "x.test", Links: []platform.GuidanceLink{{Name: "Gitea", URL: "https://g"}}, Components: []string{"web"}})
	require.NoError(t, err)
	require.Equal(t, "blue on x.test: Gitea at https://g, with web", text)

	for broken, want := range map[string]string{"{{.Password}}": "can't evaluate field Password", "{{": "unclosed action"} {
		fsys["guidance.txt"] = &fstest.MapFile{Data: []byte(broken)}
		_, err = platform.Load(fsys)
		require.ErrorContains(t, err, "guidance: got \"guidance.txt\" (")
		require.ErrorContains(t, err, want)
	}
	r, err = platform.Load(tree(good))
	require.NoError(t, err)
	text, err = r.Guide(platform.GuidanceData{})
	require.NoError(t, err)
	require.Empty(t, text)
}

func TestSecretsThatTheUserMayGive(t *testing.T) {
	const head = "apiVersion: slipway/v2\nname: a\nversion: 1.0.0\nnamespaces: [{name: demo}]\ncomponents:\n- {name: a, kind: manifests, bundle: a, namespace: demo}\nsecrets:\n- name: admin\n  namespace: demo\n  keys: ["
	r, err := platform.Load(tree(head + "{key: password, generate: password, give: adminPassword}]\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"adminPassword"}, r.Gives())
	require.NoError(t, r.CheckGiven([]string{"adminPassword"}))
	err = r.CheckGiven([]string{"adminPassword", "rootPassword"})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
	require.EqualError(t, err, "take the secrets of platform.secrets: platform a 1.0.0 takes no secret rootPassword")
	for key, want := range map[string]string{
		"{key: user, generate: literal, value: x, give: name}":            "secrets[0].keys[0].give: got \"name\", want none unless",
		"{key: password, generate: password, give: smtp.password}":        "which is a field of the configuration",
		"{key: password, generate: password, give: \"../../etc/passwd\"}": "want letters, digits, dots and hyphens",
	} {
		_, err = platform.Load(tree(head + key + "]\n"))
		require.ErrorContains(t, err, want)
	}
}
