package hostile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/lock"
)

// locks are cases of lock files of somebody else. Their registry is where nothing answers.
func locks() []testCase {
	commands := []command{
		from([]string{"validate", "--platform", "release", "--lock", "lock.json"}, nil, rules{}),
		from([]string{"platform", "render", "--platform", "release", "--lock", "lock.json"}, nil, rules{}),
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	var out []testCase
	add := func(name, tries, says string, make func(t *testing.T, s sandbox)) {
		out = append(out, testCase{name: "lock/" + name, tries: tries, says: says, commands: commands, make: func(t *testing.T, s sandbox) {
			s.write(t, "release/platform.yaml", []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: manifests, path: web, namespace: shop}]\n"))
			s.write(t, "release/web/web.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: web, image: busybox}]}}\n"))
			make(t, s)
		}})
	}
	text := func(name, tries, says, text string) {
		add(name, tries, says, func(t *testing.T, s sandbox) { s.write(t, "lock.json", []byte(s.fill(text))) })
	}
	change := func(name, tries, says string, change func(lock map[string]any)) {
		add(name, tries, says, func(t *testing.T, s sandbox) {
			own, err := lock.Load()
			require.NoError(t, err)
			own.Location = "127.0.0.1:9/slipway"
			there := map[string]lock.Registry{"linux/amd64": {Ref: "127.0.0.1:9/slipway:1", Digest: digest, Pushed: digest}}
			own.Lines = map[string]string{"linux/amd64": digest}
			for i := range own.Images {
				own.Images[i].Registry = there
			}
			for i := range own.Manifests {
				own.Manifests[i].Registry = there
			}
			data, err := own.Marshal()
			require.NoError(t, err)
			var all map[string]any
			require.NoError(t, json.Unmarshal(data, &all))
			change(all)
			data, err = json.Marshal(all)
			require.NoError(t, err)
			s.write(t, "lock.json", []byte(s.fill(string(data))))
		})
	}
	first := func(list, field string, value any) func(map[string]any) {
		return func(all map[string]any) { all[list].([]any)[0].(map[string]any)[field] = value }
	}
	change("none", "the lock as it could be", "", func(map[string]any) {})
	for name, location := range map[string]string{"file": "file:@ROOT@", "user": "user:@CANARY@@127.0.0.1:9/x", "escapes": "127.0.0.1:9/\x1b[31m", "option": "--insecure", "parent": "127.0.0.1:9/../..", "tag": "127.0.0.1:9/x:1"} {
		change("location: "+name, "the registry is something else", "LCK-00", func(all map[string]any) { all["location"] = location })
	}
	for _, list := range []string{"tools", "images", "manifests"} {
		change("escapes in "+list, "what is in it is called after escape sequences", "LCK-00", first(list, "name", "\x1b[31m\u009b\u202e"))
		change("parent in "+list, "what is in it is elsewhere", "LCK-00", first(list, "name", "../../secret"))
		change("twice in "+list, "it is there twice", "LCK-00", func(all map[string]any) { all[list] = append(all[list].([]any), all[list].([]any)[0]) })
	}
	change("files elsewhere", "files of manifests are elsewhere", "BUN-005", first("manifests", "files", map[string]any{"../../../secret": strings.Repeat("a", 64)}))
	change("source elsewhere", "the source of an image is a folder of the user", "", first("images", "source", "@ROOT@"))
	change("registry elsewhere", "an image is at an address of the sender", "LCK-00", first("images", "registry", map[string]any{"linux/amd64": map[string]any{"ref": "canary.example/x", "digest": "sha256:a", "archive": "@SECRET@"}}))
	change("newer", "it is of a newer version", "LCK-00", func(all map[string]any) { all["version"] = 99 })
	change("unknown field", "it says more", "LCK-00", func(all map[string]any) { all["hooks"] = []string{"touch x"} })
	text("torn", "it is not whole", "LCK-00", `{"version": 1,`)
	text("empty", "nothing is in it", "LCK-00", "")
	text("deep", "it is nested without end", "LCK-00", strings.Repeat("[", 200_000))
	text("aliases", "it is an alias of itself", "LCK-00", "version: &x [*x]")
	text("path in it", "it is the path of a file of the user", "LCK-00", "@SECRET@")
	return out
}
