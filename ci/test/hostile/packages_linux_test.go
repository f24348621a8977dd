package hostile

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// packageFile is where a case has its package.
const packageFile = "run.tar.zst"

// toInstall is what a command needs that works with images.
var toInstall = []string{"--bundle", "bundle", "--bundle-digest", "none"}

// verifying is what looks at a package itself.
func verifying() []command {
	return []command{
		from([]string{"save", "--verify", packageFile}, nil, rules{}),
		from(append([]string{"install", "--package", packageFile, "--name", "again"}, toInstall...), nil, rules{engine: true}),
	}
}

// opening is what uses the configuration in a package.
func opening() []command {
	return []command{
		from([]string{"configure", "--file", packageFile, "--out", "-"}, nil, rules{}),
		from(append([]string{"install", "--package", packageFile, "--name", "again"}, toInstall...), nil, rules{engine: true}),
		from(append([]string{"reproduce", "--package", packageFile, "--name", "again"}, toInstall...), nil, rules{engine: true}),
	}
}

// contents are the files and the index of a package.
type contents struct {
	info  runpackage.Info
	files runpackage.Files
}

// harmless is a package with this in its configuration.
func harmless(t *testing.T, answers string) contents {
	t.Helper()
	release := fstest.MapFS{
		"platform.yaml": {Data: []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: manifests, path: web, namespace: shop}]\n")},
		"web/web.yaml":  {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}\n")},
	}
	digest, err := platform.Digest(release)
	require.NoError(t, err)
	config := []byte("apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50}\n" + answers)
	c := contents{
		info: runpackage.Info{
			Run: "20260102-030405-abcdef", Workflow: "install", Deployment: "shop", Outcome: "failed", Code: "ORC-005", Step: "orchestrator/sync",
			Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Platform: runpackage.Platform{Name: "shop", Version: "1.0.0", Digest: digest},
		},
		files: runpackage.Files{runpackage.ConfigFile: {Data: config}},
	}
	require.NoError(t, c.files.Add(runpackage.ReleaseDir, release))
	record, err := (&report.Run{ID: c.info.Run, Workflow: c.info.Workflow, Deployment: c.info.Deployment, Outcome: report.Failed, Started: c.info.Started}).Encode()
	require.NoError(t, err)
	c.files[runpackage.RunDir+"/"+report.RecordFile], c.files[runpackage.ImagesFile] = runpackage.File{Data: record}, runpackage.File{Data: []byte("{}")}
	return c
}

// pack is the package as slipway would write it.
func (c contents) pack(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, runpackage.Write(&b, c.info, c.files, nil))
	return b.Bytes()
}

// put writes a package, and the bundle with which it would be installed.
func (s sandbox) put(t *testing.T, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(s.path("work/"+packageFile), data, 0o644))
	s.bundle(t)
}

// places are settings of a configuration that refer to a secret, each with what it is in.
var places = map[string]string{
	"existing.kubeconfig":    "provider: existing\nexisting: {kubeconfig: 'REF'}",
	"onprem.kubeconfig":      "provider: onprem\nonprem: {kubeconfig: 'REF'}",
	"tls.key":                "tls: {mode: given, key: 'REF'}",
	"smtp.password":          "smtp: {host: mail.example.com, from: a@example.com, username: u, password: 'REF'}",
	"git.password":           "git: {url: 'https://git.example.com/a/b.git', username: u, password: 'REF'}",
	"git.sshKey":             "git: {url: 'ssh://git@git.example.com/a/b.git', sshKey: 'REF', knownHosts: 'git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5'}",
	"observability.password": "observability: {endpoint: 'https://m.example.com', username: u, password: 'REF'}",
	"state.key":              "state: {url: 's3://bucket?region=eu-central-1', key: 'REF'}",
	"state.credentials":      "state: {url: 's3://bucket?region=eu-central-1', credentials: {AWS_ACCESS_KEY_ID: 'REF', AWS_SECRET_ACCESS_KEY: 'REF'}}",
	"platform.secrets":       "platform: {secrets: {adminPassword: 'REF'}}",
	"hooks.secrets":          "hooks: [{name: h, before: workflow, run: [touch, '@ROOT@/tmp/ran'], secrets: {T: 'REF'}}]",
	"advanced.save.key":      "advanced: {save: {key: 'REF'}}",
}

// references are what such a setting may say.
var references = map[string]string{
	"command": "cmd:touch @ROOT@/tmp/ran", "file": "file:@SECRET@", "vault": "vault:secret/a.b", "1Password": "op://a/b/c",
}

// configurations are cases of configurations of somebody else, with which nothing is done that
// needs a secret.
func configurations() []testCase {
	reads := []string{"."}
	commands := []command{
		from([]string{"validate", "--config", "slipway.yaml"}, reads, rules{}),
		from([]string{"platform", "render", "--config", "slipway.yaml"}, reads, rules{}),
		from([]string{"configure", "--file", "slipway.yaml", "--out", "-"}, reads, rules{}),
	}
	var out []testCase
	for place, text := range places {
		text := "apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50}\n" + strings.ReplaceAll(text, "REF", references["command"]) + "\n"
		out = append(out, testCase{name: "configuration/" + place + " is a command", tries: "a secret of the configuration is a command", commands: commands, files: map[string]string{"slipway.yaml": text}})
	}
	return out
}

// packages are cases of packages that somebody sent.
func packages() []testCase {
	var out []testCase
	add := func(name, tries, says string, commands []command, make func(t *testing.T, s sandbox) []byte) {
		out = append(out, testCase{name: "package/" + name, tries: tries, says: says, commands: commands, make: func(t *testing.T, s sandbox) { s.put(t, make(t, s)) }})
	}
	configured := func(name, tries, says, text string) {
		add(name, tries, says, opening(), func(t *testing.T, s sandbox) []byte { return harmless(t, s.fill(text)+"\n").pack(t) })
	}
	add("none", "the package is as it should be", "ENG-010", []command{opening()[1], opening()[2], opening()[0]}, func(t *testing.T, _ sandbox) []byte { return harmless(t, "").pack(t) })
	for place, text := range places {
		for kind, ref := range references {
			if strings.HasSuffix(place, ".kubeconfig") && kind == "file" {
				continue // below: an install reads it
			}
			if kind != "command" && kind != "file" && place != "existing.kubeconfig" && place != "platform.secrets" {
				continue // these are two ways to the same: of a provider's section, and of none
			}
			configured(place+" is a "+kind, "a secret of the configuration is a "+kind, "", strings.ReplaceAll(text, "REF", ref))
		}
	}
	for name, text := range map[string]string{
		"hook before configuring":          "hooks: [{name: h, before: workflow, workflows: [configure], run: [touch, '@ROOT@/tmp/ran'], secrets: {T: 'cmd:touch @ROOT@/tmp/ran'}}]",
		"hook after configuring":           "hooks: [{name: h, after: workflow, workflows: [configure], always: true, script: 'touch @ROOT@/tmp/ran'}]",
		"hook after configuring, in image": "hooks: [{name: h, after: workflow, workflows: [configure], image: 'canary.example/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', run: [x]}]",
	} {
		configured(name, "a hook runs while the package is read", "did not run", text)
	}
	for name, text := range map[string]string{
		"domain": "global: {domain: '${SECRET_TOKEN}.example.com', name: shop, scale: 50}", "proxy": "proxy: {http: 'http://${SECRET_TOKEN}.example.com:1'}", "smtp": "smtp: {host: '${SECRET_TOKEN}.example.com', from: a@example.com}",
		"state": "state: {url: 's3://${SECRET_TOKEN}?region=eu-central-1'}", "release": "platform: {release: './${SECRET_TOKEN}'}", "git": "git: {url: 'https://git.example.com/${SECRET_TOKEN}.git'}",
		"registry": "advanced: {registry: '${SECRET_TOKEN}.example.com/x'}",
	} {
		add("variable in "+name, "the configuration takes a variable of the user, who would be shown it", "", opening(), func(t *testing.T, _ sandbox) []byte {
			c := harmless(t, "")
			c.files[runpackage.ConfigFile] = runpackage.File{Data: []byte("apiVersion: slipway.sh/v1\n" + text + "\n")}
			return c.pack(t)
		})
	}
	for name, release := range map[string]string{
		"folder": "@ROOT@", "parent": "../../..", "Git": "https://canary.example/a@v1", "Git option": "https://-oProxyCommand=touch/a@--upload-pack=touch", "Git transport": "ext::sh -c touch@v1",
	} {
		configured("release in "+name, "the configuration names another release than that of the package", "", "platform: {release: '"+release+"'}")
	}
	for _, provider := range []string{"existing", "onprem"} {
		// An install reads the kubeconfig that a package names, which a line says; what is in it is not told.
		commands := opening()
		commands[1].rules.reads = append(commands[1].rules.reads, "../secret")
		add(provider+".kubeconfig is a file", "the access to the cluster is a file of the user, which is none", "", commands, func(t *testing.T, s sandbox) []byte {
			return harmless(t, s.fill(strings.ReplaceAll(places[provider+".kubeconfig"], "REF", references["file"])+"\n")).pack(t)
		})
	}
	add("own kubeconfig", "the package has the kubeconfig that it names, which names a file of the user", "", opening(), func(t *testing.T, s sandbox) []byte {
		return ownKubeconfig(t, s).pack(t)
	})
	for name, change := range map[string]func(c *contents){
		"escapes in the index": func(c *contents) { c.info.Deployment, c.info.Slipway = "shop\x1b[31m", "1\x1b]0;x\a" },
		"hidden settings":      func(c *contents) { c.info.Hidden = []string{"existing.kubeconfig"} },
		"another digest":       func(c *contents) { c.info.Platform.Digest = "sha256:" + strings.Repeat("0", 64) },
		"no digest":            func(c *contents) { c.info.Platform.Digest = "../../../../../../x" },
		"style of an upgrade": func(c *contents) {
			c.info.Workflow, c.info.Before = "upgrade", &runpackage.Before{Platform: c.info.Platform, Style: "--force"}
		},
		"no configuration": func(c *contents) { delete(c.files, runpackage.ConfigFile) },
		"directory":        func(c *contents) { c.files[runpackage.ConfigFile] = runpackage.File{Data: []byte("[]")} },
		"torn record":      func(c *contents) { c.files["run/report.json"] = runpackage.File{Data: []byte(`{"steps": [`)} },
		"program in release": func(c *contents) {
			c.files["release/web/web.yaml"] = runpackage.File{Data: []byte("#!/bin/sh\n"), Executable: true}
		},
		"many files":          func(c *contents) { c.manyFiles(5_000) },
		"configuration twice": func(c *contents) { c.files["before/config.yaml"] = c.files[runpackage.ConfigFile] },
		"aliases": func(c *contents) {
			text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
			for i := 'b'; i < 'k'; i++ {
				text += fmt.Sprintf("%c: &%c [*%c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c]\n", i, i, i-1)
			}
			c.files[runpackage.ConfigFile] = runpackage.File{Data: []byte(text)}
		},
		"deep": func(c *contents) {
			c.files[runpackage.ConfigFile] = runpackage.File{Data: []byte("a: " + strings.Repeat("[", 100_000))}
		},
		"escapes in the configuration": func(c *contents) {
			c.files[runpackage.ConfigFile] = runpackage.File{Data: []byte("apiVersion: slipway.sh/v1\nglobal: {name: \"a\\e[31m\"}\nplatform: {settings: {\"a\\e]0;x\\a\": \"\\u202e\"}}\n")}
		},
	} {
		add(name, "what the index or a file says is not so", "", opening(), func(t *testing.T, _ sandbox) []byte {
			c := harmless(t, "")
			change(&c)
			return c.pack(t)
		})
	}
	return append(out, forged()...)
}

// ownKubeconfig is a package whose configuration names a file of its own release as the access
// to the cluster. Whoever makes a package knows where configure unpacks that.
func ownKubeconfig(t *testing.T, s sandbox) contents {
	t.Helper()
	c := harmless(t, "")
	c.files["release/web/access"] = runpackage.File{Data: []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"clusters: [{name: a, cluster: {server: 'https://canary.example'}}]\nusers: [{name: a, user: {tokenFile: " + s.path("secret") + "}}]\n")}
	release := t.TempDir()
	require.NoError(t, c.files.Sub(runpackage.ReleaseDir).WriteTo(release))
	digest, err := platform.Digest(os.DirFS(release))
	require.NoError(t, err)
	c.info.Platform.Digest = digest
	at := "~/.config/slipway/releases/release-" + strings.TrimPrefix(digest, "sha256:")[:16] + "/web/access"
	c.files[runpackage.ConfigFile] = runpackage.File{Data: []byte("apiVersion: slipway.sh/v1\nglobal: {name: shop}\nprovider: existing\nexisting: {kubeconfig: 'file:" + at + "'}\n")}
	return c
}

func (c *contents) manyFiles(n int) {
	for i := range n {
		c.files[fmt.Sprintf("run/logs/%d.txt", i)] = runpackage.File{}
	}
}

// forged are cases of archives that slipway did not write.
func forged() []testCase {
	link := func(kind byte, name, to string) func(*testing.T, sandbox, *tar.Writer) {
		return func(t *testing.T, s sandbox, w *tar.Writer) {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Linkname: s.fill(to), Mode: 0o777, Devmajor: 1, Devminor: 5}))
		}
	}
	file := func(name, text string) func(*testing.T, sandbox, *tar.Writer) {
		return func(t *testing.T, s sandbox, w *tar.Writer) {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: s.fill(name), Mode: 0o644, Size: int64(len(text))}))
			_, err := io.WriteString(w, text)
			require.NoError(t, err)
		}
	}
	var out []testCase
	for name, entry := range map[string]func(*testing.T, sandbox, *tar.Writer){
		"symbolic link":        link(tar.TypeSymlink, "config.yaml", "@SECRET@"),
		"link out of a folder": link(tar.TypeSymlink, "release/out", "../../../.."),
		"hard link":            link(tar.TypeLink, "config.yaml", "@SECRET@"),
		"character device":     link(tar.TypeChar, "run/zero", ""),
		"block device":         link(tar.TypeBlock, "run/disk", ""),
		"pipe":                 link(tar.TypeFifo, "run/pipe", ""),
		"directory":            link(tar.TypeDir, "release/web/web.yaml/", ""),
		"parent":               file("../ran", "x"),
		"parent in the midst":  file("release/../../ran", "x"),
		"absolute":             file("@ROOT@/tmp/ran", "x"),
		"backslashes":          file(`release\..\..\ran`, "x"),
		"twice":                file("config.yaml", "apiVersion: slipway.sh/v1\nglobal: {name: other}\n"),
		"not in the index":     file("release/extra.yaml", "x"),
		"escapes in a name":    file("run/\x1b[31m\x9b.txt", "x"),
		"the index once more":  file("index.json", "{}"),
		"folder as a file":     file("release", "x"),
		"long name":            file("run/"+strings.Repeat("a/", 2000)+"x", "x"),
		"bidirectional name":   file("run/\u202etxt.exe", "x"),
		"larger than it is": func(t *testing.T, _ sandbox, w *tar.Writer) {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "run/big", Size: 1 << 40}))
		},
		"global header": func(t *testing.T, _ sandbox, w *tar.Writer) {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "../../ran"}}))
		},
		"record of another tar": func(t *testing.T, _ sandbox, w *tar.Writer) {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "run/x", PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}}))
		},
	} {
		out = append(out, testCase{name: "package/tar: " + name, tries: "the archive has an entry that is no file of its index", says: "PKG-002", commands: verifying(), make: func(t *testing.T, s sandbox) {
			plain := unpacked(t, harmless(t, "").pack(t))
			var b bytes.Buffer
			b.Write(bytes.TrimRight(plain, "\x00"))
			b.Write(make([]byte, (512-b.Len()%512)%512))
			w := tar.NewWriter(&b)
			entry(t, s, w)
			b.Write(make([]byte, 1024))
			s.put(t, compressed(t, b.Bytes()))
		}})
	}
	for name, change := range map[string]struct {
		do   func(t *testing.T, whole []byte) []byte
		says string
	}{
		"torn":               {func(_ *testing.T, whole []byte) []byte { return whole[:len(whole)/2] }, "PKG-002"},
		"another checksum":   {func(_ *testing.T, whole []byte) []byte { whole[len(whole)-1] ^= 1; return whole }, "PKG-002"},
		"no checksum":        {func(_ *testing.T, whole []byte) []byte { return whole[:len(whole)-4] }, "PKG-002"},
		"something after it": {func(_ *testing.T, whole []byte) []byte { return append(whole, "more"...) }, "PKG-002"},
		"two of them": {func(t *testing.T, whole []byte) []byte {
			return append(compressed(t, unpacked(t, whole)), compressed(t, unpacked(t, whole))...)
		}, "PKG-002"},
		"empty":      {func(*testing.T, []byte) []byte { return nil }, "PKG-001"},
		"magic only": {func(_ *testing.T, whole []byte) []byte { return whole[:4] }, "PKG-002"},
		"dictionary": {func(_ *testing.T, whole []byte) []byte { whole[4] |= 3; return whole }, "PKG-002"},
		"a program":  {func(*testing.T, []byte) []byte { return []byte("#!/bin/sh\ntouch ran\n") }, "PKG-001"},
		"no index":   {func(t *testing.T, whole []byte) []byte { return compressed(t, unpacked(t, whole)[1024:]) }, "PKG-002"},
		"a large window": {func(t *testing.T, whole []byte) []byte {
			return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8}, whole[6:]...)
		}, "PKG-002"},
	} {
		out = append(out, testCase{name: "package/archive: " + name, tries: "the file is no archive as slipway writes it", says: change.says, commands: verifying(), make: func(t *testing.T, s sandbox) {
			s.put(t, change.do(t, harmless(t, "").pack(t)))
		}})
	}
	return out
}

// unpacked is the tar archive of a package, and compressed the package of a tar archive.
func unpacked(t *testing.T, data []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer d.Close()
	plain, err := io.ReadAll(d)
	require.NoError(t, err)
	return plain
}

func compressed(t *testing.T, plain []byte) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return e.EncodeAll(plain, nil)
}
