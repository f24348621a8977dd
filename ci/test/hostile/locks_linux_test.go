package hostile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
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
			x := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
			for _, tool := range own.Tools {
				x.Files = append(x.Files, bundle.File{Path: "bin/" + tool.Name, Name: tool.Name, Kind: bundle.Tool, Version: tool.Version, Origin: tool.Modules[0].Origin(), SHA256: digest[7:]})
			}
			for _, i := range own.Images {
				x.Images = append(x.Images, bundle.Image{Name: i.Name, Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Digest: digest, StandsFor: i.StandsFor})
			}
			of := lock.Pushed{Toolchain: digest, Manifests: digest, Index: x}
			data, err := (&lock.File{Version: lock.Format, Location: "127.0.0.1:9/slipway", Bundles: map[string]lock.Pushed{x.Platform: of}}).Marshal()
			require.NoError(t, err)
			var all map[string]any
			require.NoError(t, json.Unmarshal(data, &all))
			change(all)
			data, err = json.Marshal(all)
			require.NoError(t, err)
			s.write(t, "lock.json", []byte(s.fill(string(data))))
		})
	}
	of := func(all map[string]any) map[string]any {
		return all["bundles"].(map[string]any)["linux/amd64"].(map[string]any)
	}
	index := func(all map[string]any) map[string]any { return of(all)["index"].(map[string]any) }
	first := func(list, field string, value any) func(map[string]any) {
		return func(all map[string]any) { index(all)[list].([]any)[0].(map[string]any)[field] = value }
	}
	change("none", "the lock as it could be", "", func(map[string]any) {})
	for name, location := range map[string]string{"file": "file:@ROOT@", "user": "user:@CANARY@@127.0.0.1:9/x", "escapes": "127.0.0.1:9/\x1b[31m", "option": "--insecure", "parent": "127.0.0.1:9/../..", "tag": "127.0.0.1:9/x:1"} {
		change("location: "+name, "the registry is something else", "LCK-00", func(all map[string]any) { all["location"] = location })
	}
	for _, list := range []string{"files", "images"} {
		change("escapes in "+list, "what is in it is called after escape sequences", "LCK-00", first(list, "name", "\x1b[31m\u009b\u202e"))
		change("twice in "+list, "it is there twice", "LCK-00", func(all map[string]any) {
			index(all)[list] = append(index(all)[list].([]any), index(all)[list].([]any)[0])
		})
	}
	change("image elsewhere", "an image is elsewhere in the registry", "LCK-00", first("images", "name", "../../secret"))
	change("file elsewhere", "a file is elsewhere", "LCK-00", first("files", "path", "../../secret"))
	change("archive elsewhere", "an image is in a file of the user", "LCK-00", first("images", "archive", "@SECRET@"))
	change("digest elsewhere", "the toolchain is at an address of the sender", "LCK-00", func(all map[string]any) { of(all)["toolchain"] = "canary.example/x" })
	change("another tool", "a tool is of somebody else", "BUN-005", first("files", "origin", "go:canary.example/x@v1.0.0"))
	change("newer", "it is of a newer version", "LCK-00", func(all map[string]any) { all["version"] = 99 })
	change("unknown field", "it says more", "LCK-00", func(all map[string]any) { all["hooks"] = []string{"touch x"} })
	text("torn", "it is not whole", "LCK-00", `{"version": 1,`)
	text("empty", "nothing is in it", "LCK-00", "")
	text("deep", "it is nested without end", "LCK-00", strings.Repeat("[", 200_000))
	text("aliases", "it is an alias of itself", "LCK-00", "version: &x [*x]")
	text("path in it", "it is the path of a file of the user", "LCK-00", "@SECRET@")
	return out
}
