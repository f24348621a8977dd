package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/provenance"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/trusttest"
)

const rehearsed = "v9.8.7-rc.1"

// TestDryRun makes a release of this checkout for this machine, and reads each of its files as
// those do who get them.
func TestDryRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "dist")
	private, public := trusttest.Files(t)
	dry := func() (code int, says string) {
		var stdout, stderr bytes.Buffer
		code = run([]string{
			"-version", rehearsed, "-dry", "-targets", host, "-out", out, "-key", private,
			"-registry", "127.0.0.1:1/slipway", "-url", "https://example.com/files/",
		}, &stdout, &stderr)
		return code, stderr.String()
	}
	code, says := dry()
	require.Zero(t, code, says)
	require.Contains(t, says, "dry run: nothing is pushed to 127.0.0.1:1/slipway")
	code, says = dry()
	require.Equal(t, 2, code, says)
	require.Contains(t, says, "OUT: "+out+" is not empty")

	name := "slipway_9.8.7-rc.1_" + strings.ReplaceAll(host, "/", "_")
	wants := []string{checksumsFile, "notes.md", "slipway.rb", name + ".cdx.json", name + ".tar.gz", "slipway_9.8.7-rc.1.provenance.sigstore.json"}
	if arch, ok := strings.CutPrefix(host, "linux/"); ok {
		wants = append(wants, "slipway_9.8.7-rc.1_"+arch+".deb")
	}
	slices.Sort(wants)
	require.Equal(t, wants, names(t, out))
	sums := map[string]string{}
	for line := range strings.Lines(read(t, out, checksumsFile)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[file] = sum
	}
	require.Len(t, sums, len(wants)-2, "all but itself, and the provenance, which names them")
	tool(t, out, "sha256sum", "-c", checksumsFile)

	unpacked := unpack(t, filepath.Join(out, name+".tar.gz"))
	dir := filepath.Join(unpacked, name)
	require.Subset(t, names(t, dir), []string{"LICENSE", "README.md", "completions", "man", "slipway"})
	require.Equal(t, []string{"_slipway", "slipway.bash", "slipway.fish", "slipway.ps1"}, names(t, filepath.Join(dir, "completions")))
	require.Contains(t, read(t, dir, "completions/slipway.bash"), "__slipway_debug()")
	p := program{system: host, path: filepath.Join(dir, "slipway")}
	text, err := p.says(t.Context(), "version")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "slipway "+rehearsed+"\n"), "%s", text)
	root, err := gotool.Checkout()
	require.NoError(t, err)
	changelog := read(t, root, "CHANGELOG.md")
	require.NotEmpty(t, section(changelog, "v0.1.0"))
	require.Equal(t, section(changelog, "")+"\n", read(t, out, "notes.md"))
	require.Contains(t, read(t, root, "dagger.json"), `"engineVersion": "`+regexp.MustCompile(`(?m)^dagger +(v.*)$`).FindStringSubmatch(string(text))[1]+`"`)

	page := read(t, dir, "man/slipway-install.1")
	require.Contains(t, page, "\n.TH \"SLIPWAY-INSTALL\" \"1\" ")
	help, err := p.says(t.Context(), "install", "--help")
	require.NoError(t, err)
	flags := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(string(help), -1)
	require.Greater(t, len(flags), 10)
	for _, flag := range flags {
		require.Contains(t, page, "--"+flag[1]+"\\fP")
	}
	require.Contains(t, read(t, dir, "man/slipway.1"), "Exit codes: 0 ok")
	require.NotContains(t, names(t, filepath.Join(dir, "man")), "slipway-commands.1", "it is hidden")

	t.Run("package", func(t *testing.T) {
		_, arch, _ := strings.Cut(host, "/")
		file := filepath.Join(out, "slipway_9.8.7-rc.1_"+arch+".deb")
		if _, err := exec.LookPath("dpkg-deb"); err != nil {
			t.Skip("dpkg-deb is on Debian")
		}
		control := tool(t, out, "dpkg-deb", "-I", file)
		for _, field := range []string{"Package: slipway", "Version: 9.8.7~rc.1", "Architecture: " + arch} {
			require.Contains(t, control, " "+field+"\n")
		}
		root := t.TempDir()
		tool(t, out, "dpkg-deb", "-x", file, root)
		require.Equal(t, read(t, dir, "slipway"), read(t, root, "usr/bin/slipway"))
		for from, to := range map[string]string{
			"slipway.bash": "bash-completion/completions/slipway", "_slipway": "zsh/vendor-completions/_slipway", "slipway.fish": "fish/vendor_completions.d/slipway.fish",
		} {
			require.Equal(t, read(t, dir, "completions/"+from), read(t, root, "usr/share/"+to))
		}
		require.Len(t, names(t, filepath.Join(root, "usr/share/man/man1")), len(names(t, filepath.Join(dir, "man"))))
		require.Equal(t, page, unzipped(t, filepath.Join(root, "usr/share/man/man1/slipway-install.1.gz")))
		require.Contains(t, read(t, root, "usr/share/doc/slipway/copyright"), "License: Apache-2.0")
		require.Equal(t, read(t, out, "notes.md"), unzipped(t, filepath.Join(root, "usr/share/doc/slipway/changelog.gz")))
	})

	t.Run("SBOM", func(t *testing.T) {
		var bom cyclonedx.BOM
		require.NoError(t, cyclonedx.NewBOMDecoder(strings.NewReader(read(t, out, name+".cdx.json")), cyclonedx.BOMFileFormatJSON).Decode(&bom))
		require.Equal(t, "slipway "+rehearsed, bom.Metadata.Component.Name+" "+bom.Metadata.Component.Version)
		require.Equal(t, sum(t, p.path), (*bom.Metadata.Component.Hashes)[0].Value)
		versions := map[string]string{}
		for _, c := range *bom.Components {
			versions[c.Name] = c.Version
		}
		for _, module := range []string{"dagger.io/dagger", "helm.sh/helm/v3", "k8s.io/client-go", "github.com/spf13/cobra"} {
			require.Regexp(t, `(?m)^\s`+regexp.QuoteMeta(module+" "+versions[module])+`$`, read(t, root, "go.mod"))
		}
		require.Regexp(t, `^go1\.`, versions["std"])
	})

	t.Run("provenance", func(t *testing.T) {
		key, err := trust.PublicKey([]byte(read(t, "", public)))
		require.NoError(t, err)
		says := trusttest.Open[predicate](t, []byte(read(t, out, "slipway_9.8.7-rc.1.provenance.sigstore.json")), key)
		require.Equal(t, provenance.PredicateType, says.PredicateType)
		subjects := map[string]string{}
		for _, s := range says.Subject {
			subjects[s.Name] = s.Digest["sha256"]
		}
		require.Equal(t, sums, subjects)
		require.Equal(t, parameters{Version: rehearsed, Targets: []string{host}, Dry: true}, says.Predicate.BuildDefinition.ExternalParameters)
		uris := map[string]string{}
		for _, d := range says.Predicate.BuildDefinition.ResolvedDependencies {
			uris[d.URI+d.Name] = d.Digest["sha256"] + d.Digest["gitCommit"]
		}
		require.Contains(t, string(text), "sha256:"+uris["sources of slipway"])
		require.Len(t, uris["sources of slipway"], 64)
	})

	require.Contains(t, read(t, out, "slipway.rb"), `      url "https://example.com/files/`+name+".tar.gz\"\n      sha256 \""+sums[name+".tar.gz"]+"\"\n")
}

// TestTwoRunsAreAlike: a release is the same, byte for byte, whatever the times of the files
// that it is made of, for every system.
func TestTwoRunsAreAlike(t *testing.T) {
	key := trusttest.Keys(t)["Ed25519"].(ed25519.PrivateKey)
	assembled := func(at time.Time) string {
		dir := t.TempDir()
		of, s := &programs{host: fake(t, dir, host), sources: "sha256:" + strings.Repeat("ab", 32)}, &source{root: dir, commit: "c0ffee", at: time.Unix(1_800_000_000, 0).UTC(), notes: "- It works."}
		o := options{version: "v1.2.3", out: filepath.Join(dir, "dist"), targets: []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64"}}
		for _, system := range o.targets {
			of.targets = append(of.targets, fake(t, filepath.Join(dir, system), system))
		}
		for _, name := range []string{"LICENSE", "README.md"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
		}
		require.NoError(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(name, at, at))
		}))
		require.NoError(t, o.assemble(t.Context(), s, of, key, io.Discard))
		return o.out
	}
	first, second := assembled(time.Unix(1_700_000_000, 0)), assembled(time.Unix(1_750_000_000, 0))
	require.Equal(t, names(t, first), names(t, second))
	for _, name := range names(t, first) {
		require.True(t, read(t, first, name) == read(t, second, name), name)
	}
	require.Subset(t, names(t, first), []string{"slipway_1.2.3_amd64.deb", "slipway_1.2.3_arm64.deb", "slipway_1.2.3_darwin_arm64.tar.gz", "slipway_1.2.3_windows_amd64.zip"})
	formula := read(t, first, "slipway.rb")
	require.Regexp(t, `(?s)on_macos do\n    on_arm do\n      url "https://github.com/slipway-sh/slipway/releases/download/v1.2.3/slipway_1.2.3_darwin_arm64.tar.gz".*on_intel.*on_linux.*on_arm.*on_intel`, formula)
	require.NotContains(t, formula, "windows")
	says := trusttest.Open[predicate](t, []byte(read(t, first, "slipway_1.2.3.provenance.sigstore.json")), key.Public())
	require.Equal(t, provenance.Dependency{URI: "git+" + homepage, Digest: map[string]string{"gitCommit": "c0ffee"}}, says.Predicate.BuildDefinition.ResolvedDependencies[0])
}

// TestPush: nothing is pushed unless the program is that of the bundle.
func TestPush(t *testing.T) {
	dir, dist, from := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "bundle")
	p := fake(t, dir, host)
	o := options{version: "v1.2.3", registry: "example.com/slipway", bundle: from, key: "/key.pem"}
	require.ErrorContains(t, o.push(t.Context(), t.TempDir(), p, dist, io.Discard), "read what the bundle says of itself: ")
	require.NoError(t, os.Mkdir(from, 0o700))
	for _, name := range []string{"sbom.cdx.json", "provenance.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(name), 0o600))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "calls")))
	require.NoError(t, o.push(t.Context(), t.TempDir(), p, dist, io.Discard))
	require.Equal(t, "lock verify --bundle "+from+"\nbundle push "+from+" --to example.com/slipway --lock-out "+dist+"/slipway.lock.json --key /key.pem\n", read(t, dir, "calls"))
	require.Equal(t, "sbom.cdx.json", read(t, dist, "slipway_1.2.3_bundle_"+runtime.GOARCH+".cdx.json"))
	require.Equal(t, "provenance.json", read(t, dist, "slipway_1.2.3_bundle_"+runtime.GOARCH+".provenance.json"))
	require.NoError(t, os.Remove(filepath.Join(dir, "calls")))

	o.other = from + "@sha256:aa"
	require.NoError(t, o.push(t.Context(), t.TempDir(), p, dist, io.Discard))
	push := " --to example.com/slipway --lock-out " + dist + "/slipway.lock.json --key /key.pem"
	require.Equal(t, "lock verify --bundle "+from+"\nbundle push "+from+push+"\nbundle push "+from+push+" --merge --bundle-digest sha256:aa\n", read(t, dir, "calls"))
	require.Equal(t, "sbom.cdx.json", read(t, dist, "slipway_1.2.3_bundle_"+otherArch()+".cdx.json"))
	require.NoError(t, os.Remove(filepath.Join(dir, "calls")))

	o.key, o.bundle, o.other = "", "/another", ""
	require.EqualError(t, o.push(t.Context(), t.TempDir(), p, "/dist", io.Discard), "slipway lock verify: exit status 3")
	require.Equal(t, "lock verify --bundle /another\n", read(t, dir, "calls"))
}

// TestTheModulesLock: the module of a tag has the lock of the release, or none.
func TestTheModulesLock(t *testing.T) {
	dir := t.TempDir()
	module, release := filepath.Join(dir, "module.json"), filepath.Join(dir, "release.json")
	require.NoError(t, os.WriteFile(release, []byte("{1}"), 0o600))
	var stderr strings.Builder
	require.NoError(t, sameLock(module, release, "v1.2.3", &stderr))
	require.Equal(t, "warning: the commit has no ci/slipway.lock.json: dagger call -m URL@v1.2.3 needs --lock\n", stderr.String())
	require.NoError(t, os.WriteFile(module, []byte("{1}"), 0o600))
	require.NoError(t, sameLock(module, release, "v1.2.3", &stderr))
	require.NoError(t, os.WriteFile(module, []byte("{2}"), 0o600))
	require.ErrorContains(t, sameLock(module, release, "v1.2.3", &stderr), "ci/slipway.lock.json is not that of the bundle that was pushed")
}

// fake is a program that does nothing but answer what a release asks, and lists its other
// calls in a file beside it. It is that of no other bundle than one in a folder bundle.
func fake(t *testing.T, dir, system string) program {
	t.Helper()
	p := program{system: system, digest: "sha256:" + strings.Repeat("cd", 32), build: &debug.BuildInfo{GoVersion: "go1.26.3"}}
	p.path = filepath.Join(dir, p.file())
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(p.path, []byte(`#!/bin/sh
case "$1" in
completion) echo "# $2" ;;
commands) echo '{"use": "slipway", "short": "Does it.", "commands": [{"use": "install", "short": "Installs.", "flags": [{"name": "name", "type": "string"}]}]}' ;;
*) echo "$*" >>"${0%/*}/calls"; case "$*" in *another) exit 3 ;; esac ;;
esac
`), 0o755))
	return p
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func sum(t *testing.T, name string) string {
	t.Helper()
	digest, err := bundle.Sum(t.Context(), name)
	require.NoError(t, err)
	return digest
}

func unzipped(t *testing.T, name string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(read(t, "", name)))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}

// unpack unpacks an archive, whose files must be sorted and all of one time.
func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	in := tar.NewReader(strings.NewReader(unzipped(t, name)))
	last, at := "", time.Time{}
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		require.Less(t, last, header.Name)
		require.True(t, last == "" || header.ModTime.Equal(at), header.Name)
		last, at = header.Name, header.ModTime
		to := filepath.Join(dir, filepath.FromSlash(path.Clean(header.Name)))
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, text, fs.FileMode(header.Mode)))
	}
}
