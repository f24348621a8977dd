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

// aptHere skips the test on a machine without apt.
func aptHere(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("needs apt-get, which only Debian and its relatives have")
	}
}

func TestHostTakesTheReleasesOwnSuites(t *testing.T) {
	aptHere(t)
	rel, err := HostRelease(host(t, map[string]string{
		"etc/os-release": osRelease,
		"etc/apt/sources.list": "deb http://mirror.example/debian/ bookworm contrib main # a comment\ndeb http://mirror.example/debian bookworm-backports main\n" +
			"deb-src http://source.example/debian bookworm main\n# deb http://old.example/debian bookworm main\n",
		"etc/apt/sources.list.d/s.sources": "types: deb deb-src\nURIs: http://mirror.example/security\nSuites: bookworm-security\n  bookworm-updates\nComponents: main\n\n" +
			"Types: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n",
		"etc/apt/sources.list.d/vendor.list":   "deb https://vendor.example/apt vendor-bookworm main\n",
		"etc/apt/sources.list.d/other.sources": "Types: deb\nURIs: https://other.example\nSuites: nodistro\nComponents: main\n",
		"etc/apt/sources.list.d/old.list.save": "deb http://saved.example/debian bookworm main\n",
	}))
	require.NoError(t, err)
	require.Equal(t, "bookworm", rel.Codename)
	const deb = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/"
	require.ElementsMatch(t, []string{
		deb + "debian bookworm main", deb + "security bookworm-security main", deb + "security bookworm-updates main",
	}, strings.Split(strings.TrimSpace(rel.Sources), "\n"))
}

func TestHostRefusesWhatIsNoDebian(t *testing.T) {
	_, err := HostRelease(host(t, map[string]string{"etc/os-release": "ID=ubuntu\nVERSION_CODENAME=noble\n"}))
	require.ErrorContains(t, err, `ID="ubuntu"`)
	aptHere(t)
	_, err = HostRelease(host(t, map[string]string{"etc/os-release": osRelease}))
	require.ErrorContains(t, err, "no mirror for Debian bookworm")
	_, err = HostRelease(host(t, map[string]string{"etc/os-release": osRelease, "etc/apt/sources.list": "deb [unclosed http://x bookworm main\n"}))
	require.ErrorContains(t, err, "ask apt for its mirrors: ")
}

func TestRootKey(t *testing.T) {
	rel := Release{Codename: "bookworm", Sources: "deb http://a.example bookworm main\n"}
	base := Root{Name: "r", Packages: []string{"git", "runc"}, Release: rel}
	require.Equal(t, base.Key(), Root{Name: "r", Packages: []string{"runc", "git"}, Release: rel}.Key(), "order of packages")
	moved := rel
	moved.Sources = "deb http://b.example bookworm main\n"
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
	require.Contains(t, f.Fix, "mmdebstrap e2fsprogs")
	require.NotContains(t, f.Fix, "there ")
}

// mirror writes a mirror without a signature into a folder, with the packages of an architecture.
func mirror(t *testing.T, arch, packages string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Packages"), []byte(packages), 0o644))
	return "deb [trusted=yes arch=" + arch + "] file:" + dir + " ./\n"
}

// TestListsOfAnotherArchitecture asks this machine's apt, of nothing but a folder.
func TestListsOfAnotherArchitecture(t *testing.T) {
	aptHere(t)
	pkg := func(name string) string {
		return "Package: " + name + "\nVersion: 1:2-3\nArchitecture: s390x\nFilename: " + name + ".deb\nSize: 1\nSHA256: " + strings.Repeat("a", 64) + "\n\n"
	}
	lists, err := FetchLists(t.Context(), Release{Codename: "bookworm", Arch: "s390x", Sources: mirror(t, "s390x", pkg("libc6")+pkg("git"))})
	require.NoError(t, err)
	defer lists.Close()
	text, err := lists.Show(t.Context(), []string{"git=1:2-3"})
	require.NoError(t, err)
	require.Contains(t, string(text), "SHA256: "+strings.Repeat("a", 64))

	_, err = lists.Show(t.Context(), []string{"left-pad=1"})
	require.ErrorContains(t, err, "apt-cache show: ")
	_, err = FetchLists(t.Context(), Release{Arch: "s390x", Sources: "deb file:" + t.TempDir() + " bookworm main\n"})
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
		list, err := exec.CommandContext(t.Context(), "tar", "--list", "--file", filepath.Join(dir, TarFile)).Output()
		require.NoError(t, err)
		require.Contains(t, string(list), "./usr/sbin/update-ca-certificates\n")
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
