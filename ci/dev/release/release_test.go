package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/trust"
)

const rehearsed = "v9.8.7-rc.1"

// TestDryRun makes a release of this checkout for this machine, and reads each of its files as a
// user does.
func TestDryRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "dist")
	public, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	private := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	dry := func() (code int, says string) {
		var stderr bytes.Buffer
		code = run(t.Context(), []string{
			"-version", rehearsed, "-dry", "-targets", host, "-out", out, "-key", private,
		}, &stderr)
		return code, stderr.String()
	}
	code, says := dry()
	require.Zero(t, code, says)
	require.Contains(t, says, "the commit has no ci/slipway.lock.json")
	code, says = dry()
	require.Equal(t, 2, code, says)
	require.Contains(t, says, "OUT: "+out+" is not empty")

	name := "slipway_9.8.7-rc.1_" + strings.ReplaceAll(host, "/", "_")
	wants := []string{"checksums.txt", "notes.md", name + ".cdx.json", name + ".tar.gz", "slipway_9.8.7-rc.1.provenance.sigstore.json"}
	if arch, ok := strings.CutPrefix(host, "linux/"); ok {
		wants = append(wants, "slipway_9.8.7-rc.1_"+arch+".deb")
	}
	slices.Sort(wants)
	require.Equal(t, wants, names(t, out))
	sums := map[string]string{}
	for line := range strings.Lines(read(t, out, "checksums.txt")) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[file] = sum
	}
	require.Len(t, sums, len(wants)-2, "all but itself, and the provenance, which names them")
	tool(t, out, "sha256sum", "-c", "checksums.txt")

	unpacked := t.TempDir()
	tool(t, unpacked, "tar", "-xzf", filepath.Join(out, name+".tar.gz"))
	dir := filepath.Join(unpacked, name)
	require.Equal(t, []string{"LICENSE", "README.md", "completions", "slipway"}, names(t, dir))
	require.Equal(t, []string{"_slipway", "slipway.bash", "slipway.fish", "slipway.ps1"}, names(t, filepath.Join(dir, "completions")))
	require.Contains(t, read(t, dir, "completions/slipway.bash"), "__slipway_debug()")
	text := tool(t, dir, "./slipway", "version")
	require.True(t, strings.HasPrefix(text, "slipway "+rehearsed+"\n"), text)
	root, err := gotool.Checkout()
	require.NoError(t, err)
	changelog := read(t, root, "CHANGELOG.md")
	require.NotEmpty(t, section(changelog, "v0.1.0"))
	require.Equal(t, section(changelog, "")+"\n", read(t, out, "notes.md"))
	require.Contains(t, read(t, root, "dagger.json"), `"engineVersion": "`+regexp.MustCompile(`(?m)^dagger +(v.*)$`).FindStringSubmatch(text)[1]+`"`)

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
		to := t.TempDir()
		tool(t, out, "dpkg-deb", "-x", file, to)
		for installed, from := range map[string]string{
			"bin/slipway": "slipway", "share/doc/slipway/copyright": "LICENSE", "share/bash-completion/completions/slipway": "completions/slipway.bash",
			"share/zsh/vendor-completions/_slipway": "completions/_slipway", "share/fish/vendor_completions.d/slipway.fish": "completions/slipway.fish",
		} {
			require.True(t, read(t, dir, from) == read(t, filepath.Join(to, "usr"), installed), installed)
		}
	})

	t.Run("SBOM", func(t *testing.T) {
		var bom cyclonedx.BOM
		require.NoError(t, cyclonedx.NewBOMDecoder(strings.NewReader(read(t, out, name+".cdx.json")), cyclonedx.BOMFileFormatJSON).Decode(&bom))
		require.Equal(t, "slipway "+rehearsed, bom.Metadata.Component.Name+" "+bom.Metadata.Component.Version)
		sum, err := bundle.Sum(t.Context(), filepath.Join(dir, "slipway"))
		require.NoError(t, err)
		require.Equal(t, sum, (*bom.Metadata.Component.Hashes)[0].Value)
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
		var signed struct {
			Envelope struct {
				Payload     []byte
				PayloadType string
				Signatures  []struct{ Sig []byte }
			} `json:"dsseEnvelope"`
		}
		require.NoError(t, json.Unmarshal([]byte(read(t, out, "slipway_9.8.7-rc.1.provenance.sigstore.json")), &signed))
		e := signed.Envelope
		require.True(t, ed25519.Verify(public, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload), e.Signatures[0].Sig))
		var says trust.Statement[trust.Provenance]
		require.NoError(t, json.Unmarshal(e.Payload, &says))
		require.Equal(t, trust.ProvenanceType, says.PredicateType)
		subjects := map[string]string{}
		for _, s := range says.Subject {
			subjects[s.Name] = s.Digest["sha256"]
		}
		require.Equal(t, sums, subjects)
		uris := map[string]string{}
		for _, d := range says.Predicate.BuildDefinition.ResolvedDependencies {
			uris[d.URI+d.Name] = d.Digest["sha256"]
		}
		require.Contains(t, text, "sha256:"+uris["sources of slipway"])
		require.Len(t, uris["sources of slipway"], 64)
	})
}

func TestSection(t *testing.T) {
	const changelog = "# Changelog\n\n## 1.4.0 (unreleased)\nIt does more.\n\n### Look\n- Next.\n\n## 1.3.0 - 2026-05-01\n- Three.\n  More.\n### Details\n- A.\n\n## v1.2.0\n\n## 1.1.0\n- One.\n"
	for version, want := range map[string]string{
		"": "It does more.\n\n### Look\n- Next.", "v1.4.0": "It does more.\n\n### Look\n- Next.", "v1.3.0": "- Three.\n  More.\n### Details\n- A.", "v1.2.0": "", "v1.1.0": "- One.", "v1.3": "", "v1.0.0": "",
	} {
		require.Equal(t, want, section(changelog, version), version)
	}
}

// TestRefusals: what is in the way of a release is named, all of it at once; a dry run does
// without a clean checkout, tag and section.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("CHANGELOG.md", "# Changelog\n\n## 1.3.0 (unreleased)\n- Next.\n\n## 1.2.3\n- Works.\n")
	const who = "user.name=Somebody"
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", who, "-c", "user.email=a@example.com", "commit", "-q", "-m", "all"}, {"tag", "v1.2.3"},
	} {
		tool(t, dir, "git", args...)
	}
	r := release{root: dir, version: "v1.2.3", out: filepath.Join(t.TempDir(), "dist"), targets: []string{host}}
	require.NoError(t, r.check(t.Context()))
	require.Nil(t, r.key)
	require.Equal(t, "- Works.", r.notes)
	require.Len(t, r.commit, 40)
	require.False(t, r.at.IsZero())

	put("new", "")
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	wrong := release{root: dir, version: "v1.2.4", out: full, keyFile: filepath.Join(dir, "new"), targets: []string{"linux"}}
	err := wrong.check(t.Context())
	for _, problem := range []string{
		`TARGETS: "linux" is not of the form OS/ARCH`, "OUT: " + full + " is not empty", "KEY: ", "it is not PEM",
		"the checkout has changes that are in no commit:\n?? new", "has no tag v1.2.4", `CHANGELOG.md has no section "## 1.2.4"`,
	} {
		require.ErrorContains(t, err, problem)
	}
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3+build", "latest"} {
		r := release{root: dir, version: version, dry: true, out: r.out}
		require.ErrorContains(t, r.check(t.Context()), "VERSION="+version+" is no semantic version")
	}
	dry := release{root: dir, version: "v1.2.4", dry: true, out: r.out}
	require.NoError(t, dry.check(t.Context()))
	require.Equal(t, "- Next.", dry.notes)
	require.Empty(t, dry.commit, "the checkout has changes")
}

// TestTwoRunsAreAlike: an archive has the same bytes whatever the times of its files.
func TestTwoRunsAreAlike(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, []byte("program"), 0o600))
	r := release{at: time.Unix(1_800_000_000, 0)}
	for _, suffix := range []string{".tar.gz", ".zip"} {
		var made []string
		for _, at := range []int64{1_700_000_000, 1_750_000_000} {
			require.NoError(t, os.Chtimes(program, time.Unix(at, 0), time.Unix(at, 0)))
			name := filepath.Join(dir, "archive"+suffix)
			require.NoError(t, r.archive(name, "slipway", map[string]string{"slipway": program, "README.md": program}))
			made = append(made, read(t, "", name))
		}
		require.True(t, made[0] == made[1], suffix)
	}
}

// TestTheModulesLock: a release has the lock file of the commit, or none, and its bundles have the
// program of the commit.
func TestTheModulesLock(t *testing.T) {
	r, dist := release{root: t.TempDir(), version: "v1.2.3"}, t.TempDir()
	file := filepath.Join(r.root, "ci/slipway.lock.json")
	var stderr strings.Builder
	require.NoError(t, r.lock(dist, "sha256:aa", &stderr))
	require.Equal(t, "warning: the commit has no ci/slipway.lock.json: dagger call -m URL@v1.2.3 needs --lock\n", stderr.String())
	require.Empty(t, names(t, dist))

	of := lock.File{Version: lock.Format, Location: "example.com/slipway", Bundles: map[string]lock.Pushed{host: {
		Toolchain: bundle.DigestOf(nil), Manifests: bundle.DigestOf(nil),
		Index: bundle.Index{Version: bundle.Format, Platform: host, Files: []bundle.File{{
			Path: "bin/slipway", Name: "slipway", Kind: bundle.Tool, Version: "source", Origin: "source:sha256:aa", SHA256: bundle.DigestOf(nil)[len("sha256:"):], Size: 1,
		}}},
	}}}
	text, err := of.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.ErrorContains(t, r.lock(dist, "sha256:bb", &stderr), "with another program")
	require.NoError(t, r.lock(dist, "sha256:aa", &stderr))
	require.Equal(t, []string{"slipway.lock.json"}, names(t, dist))
	require.NoError(t, os.WriteFile(file+trust.Suffix, []byte("signed"), 0o600))
	dist = t.TempDir()
	require.NoError(t, r.lock(dist, "sha256:aa", &stderr))
	require.Equal(t, string(text), read(t, dist, "slipway.lock.json"))
	require.Equal(t, "signed", read(t, dist, "slipway.lock.json.sigstore.json"))
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
