package platform_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/stretchr/testify/require"
)

// release is a small one without apps, with the components, each a line of YAML.
func release(components ...string) fstest.MapFS {
	fsys := fstest.MapFS{
		platform.File:  {Data: []byte("apiVersion: slipway/v2\nname: a\nversion: 1.0.0\nnamespaces: [{name: demo}]\ncomponents:\n  - " + strings.Join(components, "\n  - ") + "\n")},
		"web/web.yaml": {Data: []byte("a: b")}, "job.yaml": {Data: []byte("a: b")}, "chart/Chart.yaml": {Data: []byte("name: x")},
		"empty/readme.txt": {},
	}
	for _, scale := range []string{"50", "100", "500", "1000"} {
		fsys["values/"+scale+".yaml"] = &fstest.MapFile{Data: []byte("a: b")}
	}
	return fsys
}

func TestEveryKindOfComponent(t *testing.T) {
	r, err := platform.Load(release(
		`{name: web, kind: manifests, path: web, namespace: demo, ready: [{rollout: "apps/v1/Deployment demo/web"}, {endpoint: "demo/web:80"}]}`,
		`{name: db, kind: chart, path: chart, namespace: demo, valuesFiles: ["values/{scale}.yaml"], values: {a: "{domain}"}}`,
		`{name: fill, kind: job, path: job.yaml, namespace: demo, after: [db], optional: true}`,
		`{name: seen, kind: gate, after: [web, fill], ready: [{job: demo/fill}, {cel: {object: "v1/Pod demo/x", expression: "object.status.phase == 'Running'"}}, {condition: {object: "v1/Node n", type: Ready}}]}`,
	))
	require.NoError(t, err)
	require.Empty(t, r.Foundation())
	require.Nil(t, r.Engine())
	require.Equal(t, []string{"domain", "scale"}, r.Components[1].Holes())
	require.Equal(t, "Ready=True of v1/Node n", r.Components[3].Ready[2].Describe())
}

func TestFaultsOfComponents(t *testing.T) {
	const web = `{name: web, kind: manifests, path: web, namespace: demo`
	for components, want := range map[string]string{
		web + `, after: [fill]}` + "|" + `{name: fill, kind: job, path: job.yaml, namespace: demo, after: [web]}`: `line 6: components[0].after: got a cycle: web after fill after web, want an order without a cycle`,
		web + `, after: [web]}`:  `components[0].after[0]: got "web", want another component than this one`,
		web + `, after: [moon]}`: `components[0].after[0]: got "moon", want the name of a component in this file`,
		`{name: web, kind: manifests, path: missing, namespace: demo}`:                      `components[0].path: got "missing", which does not exist`,
		`{name: web, kind: manifests, path: empty, namespace: demo}`:                        `components[0].path: got "empty", which has no YAML file`,
		`{name: web, kind: chart, path: web, namespace: demo}`:                              `components[0].path: got "web", which has no Chart.yaml`,
		web + `, values: {a: b}}`:                                                           `components[0].values: got values, want none unless kind is chart or adopted`,
		web + `, wave: 3}`:                                                                  `components[0].wave: got a value, want none for manifests`,
		web + `, required: true, optional: true}`:                                           `components[0].optional: got true, want false`,
		`{name: db, kind: chart, path: chart, namespace: demo, values: {a: "{doman}"}}`:     `components[0].values.a: got "{doman}", want {domain}`,
		`{name: db, kind: chart, path: chart, namespace: demo, values: [a]}`:                `components[0].values: got something else, want a mapping`,
		`{name: db, kind: chart, path: chart, namespace: demo, valuesFiles: ["v/{scale}"]}`: `components[0].valuesFiles[0]: got "v/50", which does not exist`,
		`{name: seen, kind: gate}`:                                                          `components[0].ready: got nothing, want at least one gate`,
		`{name: seen, kind: gate, path: web, ready: [{job: demo/x}]}`:                       `components[0].path: got a value, want none for gate`,
		web + `, ready: [{}]}`:                                                              `components[0].ready[0]: got no gate, want one of rollout, job,`,
		web + `, ready: [{job: demo/x, synced: web}]}`:                                      `components[0].ready[0]: got job and synced, want one gate in each entry`,
		web + `, ready: [{http: {service: "elsewhere/web:80"}}]}`:                           `components[0].ready[0].http.service: got "elsewhere", want one of the namespaces`,
		web + `, ready: [{http: {service: "demo/web:80", path: x, status: 42}}]}`:           `components[0].ready[0].http.status: got 42, want an HTTP status`,
		web + `, ready: [{synced: web}]}`:                                                   `components[0].ready[0].synced: got "web", want the name of a component of kind app`,
		web + `, ready: [{rollout: "v1/Pod demo/x"}]}`:                                      `components[0].ready[0].rollout: got "v1/Pod demo/x", want a Deployment`,
		web + `, ready: [{condition: {object: "nonsense", type: Ready}}]}`:                  `components[0].ready[0].condition.object: got "nonsense", want an object such as`,
		web + `, ready: [{cel: {object: "v1/Pod demo/x", expression: "object.a +"}}]}`:      `components[0].ready[0].cel.expression: got "object.a +" (`,
		web + `, ready: [{cel: {object: "v1/Pod demo/x", expression: "1 + 1"}}]}`:           `(it is int, not true or false)`,
		web + `, ready: [{job: demo/x, deadline: 48h}]}`:                                    `components[0].ready[0].deadline: got 48h, want 1s to 24h`,
		web + `, hosts: {"web.{host}": demo/web, ok.test: web}}`:                            `components[0].hosts.web.{host}: got "{host}", want {domain}`,
		`{name: web, kind: app, path: web, namespace: demo}`:                                `components[0].kind: got app without gitops`,
	} {
		_, err := platform.Load(release(strings.Split(components, "|")...))
		require.ErrorContains(t, err, want, components)
	}
}

func TestAnAppThatWaitsForWhatWaitsForApps(t *testing.T) {
	fsys := tree(strings.Replace(good, "wave: 1, images", "wave: 1, after: [seen], images", 1))
	_, err := platform.Load(fsys)
	require.ErrorContains(t, err, "a cycle: ")
}

func TestFillValues(t *testing.T) {
	known := map[string]any{"domain": "x.test", "settings.n": 3.0, "settings.on": true}
	got, err := platform.FillValues(json.RawMessage(`{"a":"https://{domain}/{domain}","b":["{settings.n}",{"c":"{settings.on}"}],"d":"{{domain}} ${domain} { domain }","e":"{settings.n} of them"}`), known)
	require.NoError(t, err)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"https://x.test/x.test","b":[3,{"c":true}],"d":"{{domain}} ${domain} { domain }","e":"3 of them"}`, string(text))
	_, err = platform.FillValues(json.RawMessage(`{"a":"{settings.missing}"}`), known)
	require.ErrorContains(t, err, "nothing is known for {settings.missing}")
}

// TestValuesWithinTexts are as a person writes them, whatever the settings were read from.
func TestValuesWithinTexts(t *testing.T) {
	var known map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"settings.v":1048576,"settings.f":0.5,"settings.l":["a<b",1],"settings.m":{"k":[true]},"settings.none":null,"settings.on":false,"settings.t":"a \"b\""}`), &known))
	known["settings.int"] = 7 // of YAML
	texts, want := map[string]string{}, map[string]string{"v": "1048576", "f": "0.5", "l": `["a<b",1]`, "m": `{"k":[true]}`, "none": "", "on": "false", "t": `a "b"`, "int": "7"}
	for name := range want {
		texts[name] = "{settings." + name + "}"
	}
	within := func(s string) map[string]string {
		out := map[string]string{}
		for name, text := range want {
			out[name] = strings.ReplaceAll(s, "*", text)
		}
		return out
	}
	got, err := platform.FillTexts(texts, known)
	require.NoError(t, err)
	require.Equal(t, within("*"), got)
	for name := range texts {
		texts[name] = "is " + texts[name] + "."
	}
	got, err = platform.FillTexts(texts, known)
	require.NoError(t, err)
	require.Equal(t, within("is *."), got)
	values, err := json.Marshal(texts)
	require.NoError(t, err)
	filled, err := platform.FillValues(values, known)
	require.NoError(t, err)
	for name, text := range within("is *.") {
		require.Equal(t, text, filled[name])
	}
	texts["missing"] = "{settings.missing}"
	_, err = platform.FillTexts(texts, known)
	require.EqualError(t, err, "missing: nothing is known for {settings.missing}")
}

func TestParseObject(t *testing.T) {
	for text, want := range map[string]platform.Object{
		"apps/v1/Deployment demo/web":       {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"},
		"v1/Node n1.example.com":            {APIVersion: "v1", Kind: "Node", Name: "n1.example.com"},
		"cert-manager.io/v1/Issuer demo/ca": {APIVersion: "cert-manager.io/v1", Kind: "Issuer", Namespace: "demo", Name: "ca"},
	} {
		got, err := platform.ParseObject(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, bad := range []string{"", "Deployment demo/web", "apps/v1/Deployment", "apps/v1/deployment demo/web"} {
		_, err := platform.ParseObject(bad)
		require.Error(t, err, bad)
	}
}

// TestComponentsAreRemovedBeforeWhatTheyComeAfter, apps before their engine, unless the
// release says otherwise.
func TestComponentsAreRemovedBeforeWhatTheyComeAfter(t *testing.T) {
	files := filesOf(t, "testdata/release")
	const text = `
apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: shop}, {name: git}, {name: cd}]
certificates: [{secret: git/tls, hosts: ["*.{domain}", gitea.git.svc]}]
components:
  - {name: addons, kind: appset, path: appsets, namespace: cd}
  - {name: shown, kind: manifests, path: manifests/web, namespace: shop, after: [web]}
  - {name: manager, kind: manifests, path: manifests/web, namespace: shop}
  - {name: gitea, kind: chart, path: charts/web, namespace: git, required: true}
  - {name: cd, kind: manifests, path: manifests/cd, namespace: cd, required: true}
  - {name: web, kind: app, path: gitops/apps/web, namespace: shop}
gitops:
  engine: cd
  server:
    component: gitea
    service: git/gitea:443
    hosts: [gitea.git.svc]
    repository: shop/platform
    accounts: {administrator: git/admin, writer: git/writer, reader: git/reader}
`
	order := func(more string) []string {
		files[platform.File] = &fstest.MapFile{Data: []byte(text + more)}
		r, err := platform.Load(files)
		require.NoError(t, err)
		var out []string
		for _, c := range r.RemovalOrder() {
			out = append(out, c.Name)
		}
		return out
	}
	require.Equal(t, []string{"manager", "shown", "web", "addons", "gitea", "cd"}, order(""))
	require.Equal(t, []string{"gitea", "manager", "shown", "web", "addons", "cd"}, order("remove: {order: [gitea]}\n"))
}
