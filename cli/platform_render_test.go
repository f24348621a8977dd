package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/contract"
)

var rewrite = flag.Bool("update", false, "rewrite golden files")

// rendered is what platform render prints for a platform release and a configuration, and
// its objects as "Kind namespace/name" with the texts in which they stand.
func rendered(t *testing.T, args ...string) (text string, objects map[string]string) {
	t.Helper()
	code, text, errs := slipway(append([]string{"platform", "render"}, args...)...)
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	objects = map[string]string{}
	for _, document := range strings.Split(text, "\n---\n")[1:] {
		head, _, _ := strings.Cut(document, "\n")
		require.Regexp(t, `^# \S.*: \S`, head)
		var o struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o), document)
		if strings.Contains(head, "not known before an install") {
			require.Empty(t, o)
			continue
		}
		require.NotEmpty(t, o.APIVersion, document)
		require.NotEmpty(t, o.Metadata.Name, document)
		id := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
		require.NotContains(t, objects, id, "each once")
		objects[id] = document
	}
	return text, objects
}

func withoutImages(t *testing.T) {
	t.Helper()
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
}

func TestPlatformRender(t *testing.T) {
	withoutImages(t)
	dir := filepath.Join(t.TempDir(), "shop")
	code, _, errs := slipway("platform", "init", dir)
	require.Zero(t, code, errs)
	text, _ := rendered(t, "--platform", dir)
	const golden = "testdata/rendered.yaml"
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "go test ./cli -run TestPlatformRender -update")

	text, objects := rendered(t, "--platform", dir, "--component", "hello")
	require.NotEmpty(t, objects)
	for _, line := range regexp.MustCompile(`(?m)^---\n# .*`).FindAllString(text, -1) {
		require.Contains(t, line, "# component hello, kind chart: charts/hello/")
	}
	code, _, errs = slipway("platform", "render", "--platform", dir, "--component", "helo")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "platform shop 0.1.0 has no component helo")
}

// TestTheExamplesAreRendered without a cluster, whole where there is a bundle, and in the
// order of their steps.
func TestTheExamplesAreRendered(t *testing.T) {
	withoutImages(t)
	text, objects := rendered(t, "--platform", "../examples/platform/manifests/1.0.0")
	require.Len(t, objects, 32)
	requireOrder(t, text, "# namespaces: platform.yaml", "# secrets: ", "# configMaps: ", "# component postgres, kind manifests: postgres/postgres.yaml",
		"# component databases, kind job: ", "# component dex, ", "# component console, ")

	text, objects = rendered(t)
	require.Len(t, objects, 50)
	require.Contains(t, text, "# component argocd, kind manifests: not known before an install: they are those of a bundle")
	require.Contains(t, objects["StatefulSet database/database"], "storageClassName: "+contract.NotKnown)
	requireOrder(t, text, "# component gitea, kind chart: ", "# component argocd, ", "# component the apps, kind gitops: ",
		"# component base, kind app: gitops/apps/base/templates/base.yaml", "# component database, ", "# component guestbook, ")

	text, objects = rendered(t, "--bundle", wholeBundle(t))
	require.Greater(t, len(objects), 50)
	require.NotContains(t, text, "not known before an install")
	require.NotContains(t, text, "@sha256:"+strings.Repeat("0", 64))
	require.Contains(t, text, "# component argocd, kind manifests: manifests/argocd of the bundle, changed by argocd")
}

func requireOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	at := 0
	for _, p := range parts {
		i := strings.Index(text[at:], p)
		require.GreaterOrEqual(t, i, 0, "%s, after what came before it", p)
		at += i
	}
}

// TestRenderedSecretsHaveNoValues, wherever they are from.
func TestRenderedSecretsHaveNoValues(t *testing.T) {
	withoutImages(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"platform.yaml": `apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: shop}]
secrets:
  - name: made
    namespace: shop
    keys:
      - {key: password, generate: password}
      - {key: token, generate: token, give: shopToken}
      - {key: user, generate: literal, value: canary-literal}
      - {key: mail, generate: given, from: smtp.password}
certificates: [{secret: shop/tls, hosts: ["shop.{domain}"]}]
components: [{name: web, kind: manifests, path: web.yaml, namespace: shop, hosts: {"login.{domain}": shop/web}}]
`,
		"web.yaml": `{apiVersion: v1, kind: Secret, metadata: {name: own}, data: {a: Y2FuYXJ5}, stringData: {b: canary-text}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: busybox}]}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: web}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: web}}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cfg := configFile(t, "apiVersion: slipway.sh/v1\nplatform: {secrets: {shopToken: 'env:CANARY_TOKEN'}}\n")
	t.Setenv("CANARY_TOKEN", "canary-given")
	text, objects := rendered(t, "--platform", dir, "--config", cfg)
	require.NotContains(t, strings.ToLower(text), "canary")
	require.NotContains(t, text, "Y2FuYXJ5")
	require.Contains(t, objects["Secret shop/made"], "stringData:\n  password: <generated>\n  token: <given>\n  user: <literal>\ntype: Opaque")
	require.Contains(t, objects["Secret shop/own"], "stringData:\n  a: <not shown>\n  b: <not shown>")
	require.Contains(t, objects["Secret shop/tls"], "tls.key: <generated>")
	require.Contains(t, objects["Pod shop/web"], "ip: "+contract.NotKnown)
	require.Contains(t, objects, "Thing /web", "only a cluster knows whether it has a namespace")
	require.Contains(t, objects, "ClusterRole /web")
}

// forged passes for lines of Slipway's own, and does something to a terminal.
const forged = "a\nvalid: b\r\n  remedy: \x1b[31mc\u2028d"

// TestCommentsOfWhatIsRendered stay comments of one line, whatever a release says in them.
func TestCommentsOfWhatIsRendered(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printRendered(&out, []contract.Rendered{
		{Component: forged, Kind: "app", File: forged, Objects: []map[string]any{{"kind": "Pod"}}},
		{Component: forged, Kind: "app", Err: errors.New(forged + "\n---\nkind: Secret")},
	}))
	require.Regexp(t, `^---\n# [^\n]*\nkind: Pod\n---\n# [^\n]*\n$`, out.String())
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\u2028")
}
