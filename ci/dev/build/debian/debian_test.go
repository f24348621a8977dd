package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestParseList(t *testing.T) {
	require.Equal(t, []Source{
		{URI: "http://mirror.example/debian", Suite: "bookworm", Components: []string{"main", "contrib"}},
		{URI: "https://mirror.example/security", Suite: "bookworm-security", Components: []string{"main"}, SignedBy: "/usr/share/keyrings/Debian.gpg"},
	}, ParseList(`
# deb http://old.example/debian buster main
deb http://mirror.example/debian/ bookworm main contrib # a comment
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/Debian.gpg] https://mirror.example/security bookworm-security main
deb [unclosed http://x bookworm main
deb http://flat.example/ ./
`))
}

func TestParseDeb822(t *testing.T) {
	require.Equal(t, []Source{
		{URI: "http://mirror.example/debian", Suite: "bookworm", Components: []string{"main"}, SignedBy: "/k.gpg"},
		{URI: "http://mirror.example/debian", Suite: "bookworm-updates", Components: []string{"main"}, SignedBy: "/k.gpg"},
		{URI: "http://two.example/debian", Suite: "bookworm", Components: []string{"main", "contrib"}},
	}, ParseDeb822(`# a comment
Types: deb deb-src
# between the fields
URIs: http://mirror.example/debian/
Suites: bookworm
  bookworm-updates
Components: main
Signed-By: /k.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main


types: deb
uris: http://two.example/debian
suites: bookworm
components: main contrib
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS
 -----END PGP PUBLIC KEY BLOCK-----
`))
}

// host writes the files of a machine and gives its root.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

const osRelease = "ID=debian\nVERSION_CODENAME=bookworm\n"

func TestHostTakesTheReleasesOwnSuites(t *testing.T) {
	rel, err := HostRelease(host(t, map[string]string{
		"etc/os-release":                       osRelease,
		"etc/apt/sources.list":                 "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian bookworm-backports main\n",
		"etc/apt/sources.list.d/s.sources":     "Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\nComponents: main\n",
		"etc/apt/sources.list.d/vendor.list":   "deb https://vendor.example/apt vendor-bookworm main\n",
		"etc/apt/sources.list.d/other.sources": "Types: deb\nURIs: https://other.example\nSuites: nodistro\nComponents: main\n",
		"etc/apt/sources.list.d/old.list.save": "deb http://saved.example/debian bookworm main\n",
	}))
	require.NoError(t, err)
	require.Equal(t, "bookworm", rel.Codename)
	var lines []string
	for _, s := range rel.Sources {
		lines = append(lines, s.Line())
	}
	require.Equal(t, []string{
		"deb http://mirror.example/debian bookworm main",
		"deb http://mirror.example/security bookworm-security main",
	}, lines)
}

func TestHostRefusesWhatIsNoDebian(t *testing.T) {
	_, err := HostRelease(host(t, map[string]string{"etc/os-release": "ID=ubuntu\nVERSION_CODENAME=noble\n"}))
	require.ErrorContains(t, err, `ID="ubuntu"`)
	_, err = HostRelease(host(t, map[string]string{"etc/os-release": osRelease}))
	require.ErrorContains(t, err, "no mirror for Debian bookworm")
}

func TestRootKey(t *testing.T) {
	rel := Release{Codename: "bookworm", Sources: []Source{{URI: "http://a.example", Suite: "bookworm", Components: []string{"main"}}}}
	base := Root{Name: "r", Packages: []string{"git", "runc"}, Release: rel}
	require.Equal(t, base.Key(), Root{Name: "r", Packages: []string{"runc", "git"}, Release: rel}.Key(), "order of packages")
	moved := rel
	moved.Sources = []Source{{URI: "http://b.example", Suite: "bookworm", Components: []string{"main"}}}
	require.Equal(t, base.Key(), Root{Name: "r", Packages: base.Packages, Release: moved}.Key(), "another mirror")
	require.NotEqual(t, base.Key(), Root{Name: "r", Packages: []string{"git"}, Release: rel}.Key())
	require.NotEqual(t, base.Key(), Root{Name: "r", Packages: base.Packages, Release: Release{Codename: "trixie"}}.Key())
	own, other := rel, rel
	own.Arch, other.Arch = runtime.GOARCH, "s390x"
	require.Equal(t, base.Key(), Root{Name: "r", Packages: base.Packages, Release: own}.Key(), "named or not")
	require.NotEqual(t, base.Key(), Root{Name: "r", Packages: base.Packages, Release: other}.Key(), "another architecture")
}

func TestRootArguments(t *testing.T) {
	args := Root{Packages: []string{"runc", "git"}, Release: Release{Codename: "bookworm"}}.arguments("/out.tar", "-", "/t.sh")
	require.Contains(t, args, "--variant=minbase")
	require.Contains(t, args, "--include=git,runc")
	require.Contains(t, args, `--customize-hook=sh /t.sh "$1"`)
	require.Equal(t, []string{"bookworm", "/out.tar", "-"}, args[len(args)-3:])
	require.NotContains(t, strings.Join(args, " "), "architectures")

	args = Root{Release: Release{Codename: "bookworm", Arch: "s390x"}}.arguments("/out.tar", "-", "/t.sh")
	require.Subset(t, args, []string{"--architectures=s390x", "--skip=check/qemu"})
	require.Equal(t, []string{"bookworm", "/out.tar", "-"}, args[len(args)-3:])
}

func TestNeed(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "there"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", bin)
	require.NoError(t, Need(t.Context(), nil, Tool{"there", "there"}))
	err := Need(t.Context(), nil, Tool{"there", "there"}, Tool{"mmdebstrap", "mmdebstrap"}, Tool{"mkfs", "e2fsprogs"})
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.EqualValues(t, "ENG-003", f.Code)
	require.Contains(t, f.Fix, "mmdebstrap, e2fsprogs")
	require.NotContains(t, f.Fix, "there,")
}

// mirror writes a mirror without a signature into a folder, with the packages of an architecture.
func mirror(t *testing.T, arch, packages string) Source {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Packages"), []byte(packages), 0o644))
	return Source{URI: "[trusted=yes arch=" + arch + "] file:" + dir, Suite: "./"}
}

// TestListsOfAnotherArchitecture asks this machine's apt, of nothing but a folder.
func TestListsOfAnotherArchitecture(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("no apt-get here")
	}
	pkg := func(name string) string {
		return "Package: " + name + "\nVersion: 1:2-3\nArchitecture: s390x\nFilename: " + name + ".deb\nSize: 1\nSHA256: " + strings.Repeat("a", 64) + "\n\n"
	}
	lists, err := FetchLists(t.Context(), Release{Codename: "bookworm", Arch: "s390x", Sources: []Source{mirror(t, "s390x", pkg("libc6")+pkg("git"))}})
	require.NoError(t, err)
	defer lists.Close()
	text, err := lists.Show(t.Context(), []string{"git=1:2-3"})
	require.NoError(t, err)
	require.Contains(t, string(text), "SHA256: "+strings.Repeat("a", 64))

	_, err = lists.Show(t.Context(), []string{"left-pad=1"})
	require.ErrorContains(t, err, "apt-cache show: ")
	_, err = FetchLists(t.Context(), Release{Arch: "s390x", Sources: []Source{{URI: "file:" + t.TempDir(), Suite: "bookworm", Components: []string{"main"}}}})
	require.ErrorContains(t, err, "apt-get -q: ")
}

// TestRootIsReproducible builds a root twice from the machine's mirror. It
// takes a minute, root and a network, so it must be asked for.
func TestRootIsReproducible(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_DEBIAN") == "" {
		t.Skip("set SLIPWAY_TEST_DEBIAN=1 to build two Debian roots")
	}
	rel, err := HostRelease("/")
	require.NoError(t, err)
	var sums []string
	for range 2 {
		dir := t.TempDir()
		require.NoError(t, Root{Name: "r", Packages: []string{"ca-certificates"}, Release: rel}.Make(t.Context(), dir))
		b, err := os.ReadFile(filepath.Join(dir, TarFile))
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		sums = append(sums, hex.EncodeToString(sum[:]))
		versions, err := Versions(filepath.Join(dir, TarFile))
		require.NoError(t, err)
		require.Contains(t, versions, "ca-certificates")
	}
	require.Equal(t, sums[0], sums[1])
}

func TestSecurityUpdatesAreTold(t *testing.T) {
	got := policies([]byte(`libc6:
  Installed: (none)
  Candidate: 2.36-9+deb12u14
  Version table:
     2.36-9+deb12u14 500
        500 https://mirror.example.com/debian bookworm/main amd64 Packages
     2.36-9+deb12u7 500
        500 https://mirror.example.com/debian bookworm-security/main amd64 Packages
openssl:
  Installed: (none)
  Candidate: 3.0.22-1~deb12u2
  Version table:
     3.0.22-1~deb12u2 500
        500 https://mirror.example.com/debian bookworm-security/main amd64 Packages
     3.0.20-1~deb12u2 500
        500 https://mirror.example.com/debian bookworm/main amd64 Packages
`))
	require.Equal(t, map[string]policy{
		"libc6":   {candidate: "2.36-9+deb12u14", security: []string{"2.36-9+deb12u7"}},
		"openssl": {candidate: "3.0.22-1~deb12u2", security: []string{"3.0.22-1~deb12u2"}},
	}, got)
}
