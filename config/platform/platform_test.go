package platform_test

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/stretchr/testify/require"
)

const good = `apiVersion: slipway/v2
name: sample
version: 1.1.0
upgradableFrom: ["1.0.0", 1.1.0-rc.1]
namespaces:
  - name: gitea
    labels: {slipway.sh/part-of: sample}
  - name: argocd
  - name: demo
secrets:
  - name: gitea-admin
    namespace: gitea
    keys:
      - {key: username, generate: literal, value: slipway}
      - {key: password, generate: password}
      - {key: token, generate: token, length: 40}
  - name: platform-repository
    namespace: argocd
    type: Opaque
    labels: {argocd.argoproj.io/secret-type: repository}
    keys:
      - {key: password, generate: copyOf, from: gitea/gitea-admin/password}
      - {key: url, generate: literal, value: "https://gitea.{domain}/slipway/platform.git"}
certificates:
  - {secret: gitea/gitea-tls, hosts: ["*.{domain}", gitea.gitea.svc]}
configMaps:
  - {name: settings, namespace: demo, data: {url: "https://web.{domain}", theme: "{settings.theme}"}}
components:
  - {name: gitea, kind: chart, path: charts/gitea, namespace: gitea, required: true, images: [gitea], values: {host: "gitea.{domain}", image: "{images.gitea}"}}
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true, images: [argocd, redis], hosts: {"gitea.{domain}": gitea/gitea}}
  - {name: web, kind: app, path: gitops/apps/web, namespace: demo, wave: 2, images: [guestbook]}
  - {name: database, kind: app, path: gitops/apps/database, namespace: demo, wave: 1, images: [postgresql]}
  - {name: extras, kind: app, path: gitops/apps/extras, namespace: demo, wave: 1, enabled: false}
  - {name: seen, kind: gate, after: [web], ready: [{http: {service: "demo/web:80"}, deadline: 1m}, {synced: web}]}
gitops:
  engine: argocd
  server:
    component: gitea
    service: gitea/gitea:443
    hosts: [gitea.gitea.svc, "gitea.{domain}"]
    repository: slipway/platform
    accounts: {administrator: gitea/gitea-admin, writer: gitea/gitea-slipway, reader: gitea/gitea-reader}
links:
  - {name: Gitea, urlTemplate: "https://gitea.{domain}/{deployment}", service: "gitea/gitea:443"}
checks:
  - {name: web answers, component: web, service: "demo/web:80", contains: rows}
`

func tree(text string) fstest.MapFS {
	fsys := fstest.MapFS{platform.File: {Data: []byte(text)}}
	for _, dir := range []string{"charts/gitea", "gitops/apps/web", "gitops/apps/database", "gitops/apps/extras"} {
		fsys[dir+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("name: x")}
	}
	return fsys
}

func TestLoad(t *testing.T) {
	r, err := platform.Load(tree(good))
	require.NoError(t, err)
	require.Equal(t, "gitops", r.GitOps.Tree)
	require.Equal(t, "platform", r.GitOps.Project.Name)
	require.Equal(t, "5m", r.Components[5].Ready[1].Deadline.String())
	require.Equal(t, platform.HTTPGate{Service: "demo/web:80", Path: "/", Status: 200}, *r.Components[5].Ready[0].HTTP)
	require.ElementsMatch(t, []string{"gitea", "argocd"}, r.Foundation())
	require.Equal(t, []string{"gitea.x.test"}, r.Hosts("x.test", "x", nil))
	require.Equal(t, "Opaque", r.Secrets[0].Type)
	require.Equal(t, 32, r.Secrets[0].Keys[1].Length)
	require.Equal(t, 40, r.Secrets[0].Keys[2].Length)
	require.True(t, r.Components[0].Enabled)
	require.False(t, r.Components[4].Enabled)
	require.Equal(t, platform.Check{Name: "web answers", Component: "web", Service: "demo/web:80", Path: "/", Status: 200, Contains: "rows"}, r.Checks[0])
	require.Equal(t, "https://gitea.blue.test/blue", r.Links[0].URL("blue.test", "blue"))
}

func names(components []platform.Component) []string {
	var out []string
	for _, c := range components {
		out = append(out, c.Name)
	}
	return out
}

func TestRelease_choose(t *testing.T) {
	r, err := platform.Load(tree(good))
	require.NoError(t, err)

	off, err := r.Off(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"extras"}, off)
	apps, err := r.Apps(off)
	require.NoError(t, err)
	require.Equal(t, []string{"database", "web"}, names(apps))

	off, err = r.Off(map[string]bool{"extras": true, "web": false})
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, off)
	on, err := r.On(off)
	require.NoError(t, err)
	require.Equal(t, []string{"gitea", "argocd", "seen", "database", "extras"}, names(on))

	_, err = r.Off(map[string]bool{"gitea": false, "argocd": false})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
	require.EqualError(t, err, "choose components: platform sample 1.1.0 cannot do without gitea, argocd")
	_, err = r.Apps([]string{"gitea"})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
	_, err = r.Off(map[string]bool{"wbe": true})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
	require.ErrorContains(t, err, "no component wbe")
	_, err = r.Apps([]string{"nope"})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
}

func TestLoad_allProblemsAtOnce(t *testing.T) {
	const bad = `apiVersion: slipway.io/v2
name: Sample
version: "1.0"
upgradableFrom: [latest]
namespaces:
  - name: demo
  - name: demo
secrets:
  - name: a
    namespace: elsewhere
    keys:
      - {key: x, generate: password, length: 4}
      - {key: x, generate: copyOf, from: demo/b/y}
      - {key: z, generate: guess}
      - {key: l, generate: literal, value: "{secret}"}
  - name: b
    namespace: demo
    keys: []
components:
  - {name: web, kind: app, path: ../web, namespace: demo, wave: 100}
  - {name: web, kind: app, path: gitops/missing, namespace: lost}
  - {name: db, kind: daemon, namespace: demo, required: true, enabled: false}
  - {name: cd, kind: chart, namespace: demo, img: [x]}
  - {name: file, kind: app, path: gitops/apps/web/Chart.yaml, namespace: default}
  - {name: out, kind: app, path: charts/gitea, namespace: demo}
links:
  - {name: x, urlTemplate: "gitea.{host}", component: nothing}
checks:
  - {name: c, service: demo/web}
gitops: {engine: out}
`
	_, err := platform.Load(tree(bad))
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	for _, want := range []string{
		`line 1: apiVersion: got "slipway.io/v2", want slipway/v2`,
		`line 2: name: got "Sample", want lower-case`,
		`line 3: version: got "1.0", want a semantic version`,
		`line 4: upgradableFrom[0]: got "latest", want a semantic version`,
		`line 7: namespaces[1].name: got "demo" again, want another name than that of namespaces[0]`,
		`line 10: secrets[0].namespace: got "elsewhere", want one of the namespaces: default, kube-system, demo, demo`,
		`line 12: secrets[0].keys[0].length: got 4, want 16 to 128 characters`,
		`line 13: secrets[0].keys[1].key: got "x" again, want each key once`,
		`line 13: secrets[0].keys[1].from: got "demo/b/y", want namespace/secret/key`,
		`line 14: secrets[0].keys[2].generate: got "guess", want password, token, literal, copyOf or given`,
		`line 15: secrets[0].keys[3].value: got "{secret}", want {domain}, {deployment} or {adminEmail}`,
		`line 18: secrets[1].keys: got nothing, want at least one key`,
		`line 20: components[0].path: got "../web", want a directory`,
		`line 20: components[0].wave: got 100, want 0 to 99`,
		`line 21: components[1].name: got "web" again`,
		`line 21: components[1].path: got "gitops/missing", which does not exist, want a directory`,
		`line 21: components[1].namespace: got "lost"`,
		`line 22: components[2].kind: got "daemon", want chart, manifests, job, gate, appset, app or adopted`,
		`line 22: components[2].enabled: got false, want true`,
		`line 23: components[3].img: got an unknown field, want one of after, bundle, empty, enabled,`,
		`line 23: components[3].path: got nothing, want the directory of a chart`,
		`line 24: components[4].path: got "gitops/apps/web/Chart.yaml", which is no directory`,
		`line 25: components[5].path: got "charts/gitea", want a directory below gitops`,
		`line 27: links[0].urlTemplate: got "gitea.{host}", want a URL`,
		`line 27: links[0].component: got "nothing", want the name of a component`,
		`line 29: checks[0].service: got "demo/web", want namespace/name:port`,
		`line 30: gitops.engine: got "out", want the name of a component that Slipway installs`,
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestLoad_noFile(t *testing.T) {
	_, err := platform.Load(fstest.MapFS{})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeMissing})
	for _, text := range []string{"", "- a", "a: b\n\t- c"} {
		_, err = platform.Load(tree(text))
		require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid}, "%q", text)
	}
}

func TestLoad_upgradableFromItself(t *testing.T) {
	_, err := platform.Load(tree(good + "\n"))
	require.NoError(t, err)
	for _, from := range []string{"1.1.0", "1.2.0", "2.0.0-rc.1"} {
		fsys := tree("apiVersion: slipway/v2\nname: a\nversion: 1.1.0\nupgradableFrom: [" + from + "]\ncomponents:\n- {name: a, kind: manifests, bundle: a, namespace: default}\n")
		_, err = platform.Load(fsys)
		require.ErrorContains(t, err, `want a version before 1.1.0`)
	}
}

func TestLoad_upgradableFromEarlierOnes(t *testing.T) {
	ordered := []string{"0.9.0", "1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.2", "1.0.10", "1.2.0", "10.0.0"}
	for i, from := range ordered {
		for j, version := range ordered {
			_, err := platform.Load(tree("apiVersion: slipway/v2\nname: a\nversion: " + version + "\nupgradableFrom: [" + from + "]\nnamespaces: [{name: argocd}]\ncomponents:\n- {name: a, kind: manifests, bundle: a, namespace: argocd}\n"))
			if i < j {
				require.NoError(t, err, "%s %s", from, version)
			} else {
				require.ErrorContains(t, err, "want a version before "+version)
			}
		}
	}
}

func TestDigest(t *testing.T) {
	digest := func(fsys fstest.MapFS) string {
		d, err := platform.Digest(fsys)
		require.NoError(t, err)
		return d
	}
	base := tree(good)
	first := digest(base)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, first)
	require.Equal(t, first, digest(tree(good)))

	for name, change := range map[string]func(fstest.MapFS){
		"content": func(f fstest.MapFS) { f["gitops/apps/web/Chart.yaml"] = &fstest.MapFile{Data: []byte("name: y")} },
		"mode":    func(f fstest.MapFS) { f["gitops/apps/web/Chart.yaml"].Mode = 0o755 },
		"path": func(f fstest.MapFS) {
			f["gitops/apps/web/chart.yaml"] = f["gitops/apps/web/Chart.yaml"]
			delete(f, "gitops/apps/web/Chart.yaml")
		},
		"added": func(f fstest.MapFS) { f["z"] = &fstest.MapFile{} },
	} {
		changed := tree(good)
		change(changed)
		require.NotEqual(t, first, digest(changed), name)
	}

	dir := t.TempDir()
	for path, f := range maps.All(base) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), f.Data, 0o640))
	}
	onDisk, err := platform.Digest(os.DirFS(dir))
	require.NoError(t, err)
	require.Equal(t, first, onDisk)

	require.NoError(t, os.Symlink(platform.File, filepath.Join(dir, "link")))
	_, err = platform.Digest(os.DirFS(dir))
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
	require.ErrorContains(t, err, "link: a symbolic link instead of a file")
}

// TestNamesOfFilesThatCannotBePrinted could pass for lines of their own where they are shown.
func TestNamesOfFilesThatCannotBePrinted(t *testing.T) {
	for _, name := range []string{"m/a\n---\nkind: Secret\n#.yaml", "m/\x1b[31m.yaml", "m/\u202e.yaml", "m/\u200b.yaml"} {
		fsys := fstest.MapFS{platform.File: {Data: []byte("apiVersion: slipway/v2\nname: a\nversion: 1.0.0\n")}, name: {}}
		for _, read := range []func() error{
			func() error { _, err := platform.Digest(fsys); return err },
			func() error { _, err := platform.Open(fsys); return err },
		} {
			err := read()
			require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid}, name)
			require.ErrorContains(t, err, ": its name has a character that cannot be printed")
		}
	}
	_, err := platform.Digest(fstest.MapFS{`m\kustomization.yaml`: {}})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid}, "a copy in an archive has a folder m")
	require.ErrorContains(t, err, `"m\\kustomization.yaml": its name has a backslash`)
	_, err = platform.Digest(fstest.MapFS{"m/über uns (1)+~.yaml": {}, "m/u\u0308.yaml": {}})
	require.NoError(t, err)
}

func TestParseService(t *testing.T) {
	ns, name, port, err := platform.ParseService("gitea/gitea-http:443")
	require.NoError(t, err)
	require.Equal(t, []any{"gitea", "gitea-http", 443}, []any{ns, name, port})
	for _, bad := range []string{"", "a:1", "a/b", "a/b:0", "a/b:70000", "a/b/c:1"} {
		_, _, _, err = platform.ParseService(bad)
		require.Error(t, err, bad)
	}
}

func TestRelease_settings(t *testing.T) {
	r, err := platform.Load(tree(good))
	require.NoError(t, err)
	require.NoError(t, r.CheckSettings(nil))
	require.NoError(t, r.CheckSettings([]byte("{}")))
	err = r.CheckSettings([]byte(`{"a":1}`))
	require.ErrorIs(t, err, &fault.Fault{Code: "PLT-003"})
	require.ErrorContains(t, err, "this platform release has no settings")

	fsys := tree(good + "settings: settings.schema.json\n")
	_, err = platform.Load(fsys)
	require.ErrorContains(t, err, `settings: got "settings.schema.json", which does not exist, want the path of a JSON schema`)
	for _, broken := range []string{"{", `{"type": "colour"}`, `{"$ref": "https://example.com/schema.json"}`} {
		fsys["settings.schema.json"] = &fstest.MapFile{Data: []byte(broken)}
		_, err = platform.Load(fsys)
		require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid}, broken)
	}
	fsys["settings.schema.json"] = &fstest.MapFile{Data: []byte(`{"type":"object","required":["theme"],"additionalProperties":false,
		"properties":{"theme":{"enum":["dark","light"]},"limits":{"type":"object","properties":{"users":{"type":"integer"}}}}}`)}
	r, err = platform.Load(fsys)
	require.NoError(t, err)
	require.NoError(t, r.CheckSettings([]byte(`{"theme":"dark","limits":{"users":3}}`)))
	require.ErrorContains(t, r.CheckSettings(nil), "theme")
	err = r.CheckSettings([]byte(`{"theme":"blue","limits":{"users":"many"},"more":1}`))
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	for _, want := range []string{"platform.settings.theme: ", "platform.settings.limits.users: ", "more"} {
		require.ErrorContains(t, err, want)
	}
}

func TestRelease_overrides(t *testing.T) {
	r, err := platform.Load(tree(good))
	require.NoError(t, err)
	values := json.RawMessage(`{"a":1}`)
	require.NoError(t, r.Overrides(map[string]json.RawMessage{"web": values, "gitea": values}))
	require.ErrorIs(t, r.Overrides(map[string]json.RawMessage{"argocd": values}), &fault.Fault{Code: "PLT-003"})
	require.ErrorIs(t, r.Overrides(map[string]json.RawMessage{"moon": values}), &fault.Fault{Code: platform.CodeUnfit})
}

func TestLoad_givenSecrets(t *testing.T) {
	key := func(key string) string {
		return "apiVersion: slipway/v2\nname: a\nversion: 1.0.0\ncomponents:\n- {name: a, kind: manifests, bundle: a, namespace: argocd}\n" +
			"namespaces: [{name: demo}, {name: argocd}]\nsecrets:\n- name: mail\n  namespace: demo\n  keys: [" + key + "]\n"
	}
	_, err := platform.Load(tree(key("{key: password, generate: given, from: smtp.password}")))
	require.NoError(t, err)
	_, err = platform.Load(tree(key("{key: password, generate: given, from: smtp.user}")))
	require.ErrorContains(t, err, `secrets[0].keys[0].from: got "smtp.user", want smtp.password or observability.password`)
	_, err = platform.Load(tree(key("{key: password, generate: given, from: smtp.password}, {key: copy, generate: copyOf, from: demo/mail/password}")))
	require.ErrorContains(t, err, "which is given")
}

func TestWhatAComponentNeedsStaysOn(t *testing.T) {
	r := &platform.Release{Components: []platform.Component{{Name: "database", Enabled: true}, {Name: "web", Enabled: true, Needs: []string{"database"}}, {Name: "tool", Needs: []string{"database"}}}}
	_, err := r.Off(map[string]bool{"database": false})
	require.ErrorIs(t, err, &fault.Fault{Code: "PLT-003"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.EqualError(t, err, "switch component database off: web needs it")
	off, err := r.Off(map[string]bool{"database": false, "web": false})
	require.NoError(t, err)
	require.Equal(t, []string{"database", "tool", "web"}, off)
}

func TestLoad_anAppInArgoCDsNamespace(t *testing.T) {
	_, err := platform.Load(tree(strings.Replace(good, "path: gitops/apps/web, namespace: demo", "path: gitops/apps/web, namespace: argocd", 1)))
	require.ErrorContains(t, err, `components[2].namespace: got "argocd", which is Argo CD's, want another one`)
}

// Whoever has the directory of a release opens its files below that.
func TestInADirectory(t *testing.T) {
	files := fstest.MapFS{"platform.yaml": {Data: []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\ncomponents: [{name: web, kind: manifests, path: web, namespace: default}]\n")}, "web/a.yaml": {}}
	r, err := platform.Load(files)
	require.NoError(t, err)
	require.Equal(t, "web/a.yaml", r.Path("web/a.yaml"))
	r, err = platform.In("my/shop", r, nil)
	require.NoError(t, err)
	require.Equal(t, filepath.FromSlash("my/shop/web/a.yaml"), r.Path("web/a.yaml"))
	require.Equal(t, "web/b.yaml", r.Path("web/b.yaml"), "that is of something else, such as the bundle")

	none, err := platform.Load(fstest.MapFS{})
	none, err = platform.In("my/shop", none, err)
	require.Nil(t, none)
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeMissing})
	require.ErrorContains(t, err, "read the platform release in my/shop: ")
	_, err = platform.In("my/shop", nil, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "unexpected EOF")
}
