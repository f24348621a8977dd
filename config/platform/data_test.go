package platform_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

const withData = `apiVersion: slipway/v2
name: shop
version: 2.0.0
upgradableFrom: [1.0.0, 1.5.0]
namespaces: [{name: shop}]
components:
  - {name: database, kind: manifests, path: web, namespace: shop, images: [postgresql, "docker.io/library/redis:8.2"]}
  - {name: search, kind: manifests, path: web, namespace: shop, enabled: false, images: [postgresql]}
data:
  - name: orders
    component: database
    pod: data/pod.yaml
    scratch: data/scratch.yaml
    dump: [dump]
    restore: [restore]
    check: [check]
    users: [Deployment shop/web]
  - {name: index, component: search, pod: data/pod.yaml, scratch: data/pod.yaml, dump: [dump], restore: [restore], check: [check], retain: 5}
migrations:
  - {name: split, version: 1.5.0, data: orders, when: before, command: [split], undo: [join]}
  - {name: trim, version: 2.0.0, data: orders, when: after, command: [trim]}
  - {name: words, version: 2.0.0, data: index, when: before, command: [words]}
`

// dataRelease is a release with data; edit changes its platform.yaml.
func dataRelease(edit ...string) fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop}\nspec: {containers: [{name: a, image: postgresql, env: [{name: DOMAIN, value: \"{domain}\"}]}]}\n"
	return fstest.MapFS{
		platform.File:       file(strings.NewReplacer(edit...).Replace(withData)),
		"web/web.yaml":      file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
		"data/pod.yaml":     file(pod),
		"data/scratch.yaml": file(strings.Replace(pod, "image: postgresql", `image: "{images.postgresql}"`, 1)),
		"data/redis.yaml":   file(strings.Replace(pod, "image: postgresql", "image: redis:8.2", 1)),
		"data/other.yaml":   file(strings.Replace(pod, "image: postgresql", "image: mysql", 1)),
		"data/nowhere.yaml": file(strings.Replace(pod, "namespace: shop", "namespace: bar", 1)),
		"data/two.yaml":     file(pod + "---\n" + pod),
		"data/aliases.yaml": file(pod + "s: &x " + strings.Repeat("a", 900<<10) + "\nl: [" + strings.Repeat("*x,", 20) + "]\n"),
		"data/job.yaml":     file("apiVersion: batch/v1\nkind: Job\n"),
		"data/bad.yaml":     file("a: [\n"),
		"data/empty.yaml":   file("apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop}\nspec: {containers: []}\n"),
		"data/hole.yaml":    file(strings.Replace(pod, "{domain}", "{domian}", 1)),
	}
}

func TestData(t *testing.T) {
	r, err := platform.Load(dataRelease())
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, r.DataOn([]string{"search"}))
	require.Equal(t, 5, r.Retain())
	orders, ok := r.DataNamed("orders")
	require.True(t, ok)
	require.Equal(t, platform.DefaultRetain, orders.Retain)
	live, scratch := orders.Pods()
	require.Contains(t, string(live), `"image":"postgresql"`)
	require.Contains(t, string(scratch), `"image":"{images.postgresql}"`)
	_, ok = r.DataNamed("none")
	require.False(t, ok)

	names := func(from string, when platform.When, data ...string) []string {
		var out []string
		for _, m := range r.MigrationsFrom(from, when, data) {
			out = append(out, m.Name)
		}
		return out
	}
	require.Equal(t, []string{"split"}, names("1.0.0", platform.Before, "orders"))
	require.Empty(t, names("1.5.0", platform.Before, "orders"), "it has been carried out for the release that is installed")
	require.Equal(t, []string{"trim"}, names("1.5.0", platform.After, "orders", "index"))
	require.Equal(t, []string{"split", "words"}, names("1.0.0", platform.Before, "orders", "index"))

	w, err := platform.ParseUser("StatefulSet shop/web")
	require.NoError(t, err)
	require.Equal(t, platform.User{Kind: "StatefulSet", Namespace: "shop", Name: "web"}, w)
	require.Equal(t, platform.DefaultRetain, (&platform.Release{}).Retain())
}

func TestDataThatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"a component that is none":       {"component: database", "component: databse", `line 11: data[0].component: got "databse"`},
		"aliases that stand for much":    {"pod: data/pod.yaml\n    scratch", "pod: data/aliases.yaml\n    scratch", "stand for more than 16 MiB"},
		"a file that is not there":       {"pod: data/pod.yaml\n    scratch", "pod: data/pd.yaml\n    scratch", `line 12: data[0].pod: got "data/pd.yaml", which does not exist`},
		"a file outside":                 {"scratch: data/scratch.yaml", "scratch: ../scratch.yaml", `line 13: data[0].scratch: got "../scratch.yaml"`},
		"two objects":                    {"scratch: data/scratch.yaml", "scratch: data/two.yaml", "it holds more than one object"},
		"no Pod":                         {"scratch: data/scratch.yaml", "scratch: data/job.yaml", `it is of kind "batch/v1" "Job"`},
		"no YAML":                        {"scratch: data/scratch.yaml", "scratch: data/bad.yaml", "it is no YAML"},
		"no container":                   {"scratch: data/scratch.yaml", "scratch: data/empty.yaml", "the Pod has no container"},
		"another namespace":              {"scratch: data/scratch.yaml", "scratch: data/nowhere.yaml", `want one of the namespaces: default, kube-system, shop`},
		"an image that is not declared":  {"scratch: data/scratch.yaml", "scratch: data/other.yaml", `the image "mysql" in data/other.yaml, want an image that the component database names under images`},
		"a name that is not known":       {"scratch: data/scratch.yaml", "scratch: data/hole.yaml", `got "{domian}"`},
		"a directory":                    {"scratch: data/scratch.yaml", "scratch: data", "which is a directory"},
		"no dump":                        {"dump: [dump]\n    restore", "dump: []\n    restore", "line 14: data[0].dump: got nothing, want a command"},
		"users that are no workload":     {"Deployment shop/web", "Pod shop/web", `line 17: data[0].users[0]: got "Pod shop/web", want a Deployment or StatefulSet`},
		"users in another namespace":     {"Deployment shop/web", "Deployment bar/web", `data[0].users[0]: got "bar"`},
		"none kept":                      {"retain: 5", "retain: 0", "data[1].retain: got 0, want 1 to 100"},
		"the same name":                  {"name: index, component", "name: orders, component", `data[1].name: got "orders" again`},
		"a step of that name":            {"{name: search, kind", "{name: backup-orders, kind", `data[0].name: got "orders", and there is a component backup-orders`},
		"a migration of a later release": {"name: trim, version: 2.0.0", "name: trim, version: 2.1.0", `line 21: migrations[1].version: got "2.1.0", want 2.0.0 or a version before it`},
		"of no data":                     {"version: 1.5.0, data: orders", "version: 1.5.0, data: order", `line 20: migrations[0].data: got "order"`},
		"at no moment":                   {"when: after", "when: later", `line 21: migrations[1].when: got "later", want before or after`},
		"without a command":              {"command: [trim]", "command: []", "line 21: migrations[1].command: got nothing"},
		"an undo of nothing":             {"undo: [join]", `undo: [""]`, "line 20: migrations[0].undo: got nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := platform.Load(dataRelease(c.from, c.to))
			require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
			require.ErrorContains(t, err, c.says)
		})
	}
	_, err := platform.Load(dataRelease("scratch: data/scratch.yaml", "scratch: data/redis.yaml"))
	require.NoError(t, err, "a reference under images may be short in the Pod")
	_, err = platform.ParseUser("shop/web")
	require.ErrorContains(t, err, "want Deployment or StatefulSet namespace/name")
}
