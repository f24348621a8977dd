package hostile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// bundle puts a bundle into the working directory, with nothing in it that runs.
func (s sandbox) bundle(t *testing.T) {
	t.Helper()
	const text = "no images\n"
	sum := sha256.Sum256([]byte(text))
	index := bundle.Index{
		Version: bundle.Format, Platform: "linux/amd64",
		Files:  []bundle.File{{Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, Version: "1", Origin: "images", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text))}},
		Images: []bundle.Image{{Name: "busybox", Ref: bundle.Host + "/busybox:1", Digest: "sha256:" + strings.Repeat("a", 64)}},
	}
	data, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(s.path("work/bundle/images"), 0o755))
	require.NoError(t, os.WriteFile(s.path("work/bundle/"+bundle.WorkloadArchive), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(s.path("work/bundle/"+bundle.IndexFile), data, 0o644))
}

// bundles are cases of bundles, and of lock files in their place, of somebody else.
func bundles() []testCase {
	commands := []command{
		from([]string{"bundle", "list", "bundle"}, nil, rules{}),
		from([]string{"bundle", "verify", "bundle"}, nil, rules{}),
		from([]string{"validate", "--platform", "release", "--bundle", "bundle", "--bundle-digest", "none"}, nil, rules{}),
	}
	var out []testCase
	add := func(name, tries, says string, make func(t *testing.T, s sandbox)) {
		out = append(out, testCase{name: "bundle/" + name, tries: tries, says: says, commands: commands, make: func(t *testing.T, s sandbox) {
			s.bundle(t)
			s.write(t, "release/platform.yaml", []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: manifests, path: web, namespace: shop}]\n"))
			s.write(t, "release/web/web.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: web, image: busybox}]}}\n"))
			make(t, s)
		}})
	}
	index := func(name, tries, says string, change func(index map[string]any)) {
		add(name, tries, says, func(t *testing.T, s sandbox) {
			text, err := os.ReadFile(s.path("work/bundle/" + bundle.IndexFile))
			require.NoError(t, err)
			var index map[string]any
			require.NoError(t, json.Unmarshal(text, &index))
			change(index)
			text, err = json.Marshal(index)
			require.NoError(t, err)
			s.write(t, "bundle/"+bundle.IndexFile, text)
		})
	}
	add("none", "the bundle as it should be", "busybox", func(*testing.T, sandbox) {})
	file := func(field string, value any) func(map[string]any) {
		return func(index map[string]any) { index["files"].([]any)[0].(map[string]any)[field] = value }
	}
	image := func(field string, value any) func(map[string]any) {
		return func(index map[string]any) { index["images"].([]any)[0].(map[string]any)[field] = value }
	}
	for name, path := range map[string]string{"parent": "../../secret", "absolute": "@SECRET@", "in the midst": "images/../../../secret", "backslashes": `images\..\..\secret`, "escapes": "images/\x1b[31m.tar", "the index": "bundle.json", "empty": "", "folder": "."} {
		index("path of a file: "+name, "a file of the bundle is elsewhere", "", file("path", path))
		index("archive of an image: "+name, "the archive of an image is elsewhere", "", image("archive", path))
	}
	const escapes = "\x1b[31m\u009b\u202e"
	for _, field := range []string{"name", "version", "origin", "kind"} {
		index("escapes in the "+field+" of a file", "what a file is called writes to the terminal", "", file(field, escapes))
	}
	for _, field := range []string{"name", "ref", "digest"} {
		index("escapes in the "+field+" of an image", "what an image is called writes to the terminal", "", image(field, escapes))
	}
	index("escapes in what an image stands for", "what an image stands for writes to the terminal", "", image("standsFor", []string{escapes}))
	index("escapes in the platform", "the platform writes to the terminal", "", func(index map[string]any) { index["platform"] = escapes })
	index("short digests", "digests are shorter than what is shown of them", "BUN-002", func(index map[string]any) { file("sha256", "a")(index); image("digest", "sha256:a")(index) })
	index("negative size", "a file has less than nothing", "", file("size", -1))
	index("newer", "the index is of a newer version", "BUN-002", func(index map[string]any) { index["version"] = 99 })
	index("unknown field", "the index says more", "BUN-002", func(index map[string]any) { index["hooks"] = []string{"touch x"} })
	index("many images", "there are thousands of images", "", func(index map[string]any) {
		one := index["images"].([]any)[0]
		for range 10_000 {
			index["images"] = append(index["images"].([]any), one)
		}
	})
	for name, text := range map[string]string{"torn": `{"version": 1,`, "empty": "", "deep": strings.Repeat("[", 200_000), "list": "[]", "two": "{}{}"} {
		add("index: "+name, "the index is none", "BUN-002", func(t *testing.T, s sandbox) { s.write(t, "bundle/"+bundle.IndexFile, []byte(text)) })
	}
	for name, to := range map[string]string{bundle.IndexFile: "@SECRET@", bundle.WorkloadArchive: "@SECRET@", "images": "@ROOT@", bundle.SignatureFile: "@SECRET@"} {
		add("link: "+name, "a file of the bundle is a link to one of the user", "", func(t *testing.T, s sandbox) {
			require.NoError(t, os.RemoveAll(s.path("work/bundle/"+name)))
			require.NoError(t, os.Symlink(s.fill(to), s.path("work/bundle/"+name)))
		})
	}
	add("pipe: "+bundle.WorkloadArchive, "an archive is a pipe", "", func(t *testing.T, s sandbox) {
		require.NoError(t, os.Remove(s.path("work/bundle/"+bundle.WorkloadArchive)))
		require.NoError(t, syscall.Mkfifo(s.path("work/bundle/"+bundle.WorkloadArchive), 0o644))
	})
	add("another program", "there is a file that the index does not have", "", func(t *testing.T, s sandbox) { s.write(t, "bundle/bin/slipway", []byte("#!/bin/sh\n")) })
	return out
}
