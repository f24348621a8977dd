package debian

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// keyring has the keys that sign Debian's archive, on this machine and in every root: apt requires it.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Release is what a machine says about its Debian.
type Release struct {
	Codename string // such as "bookworm"
	Sources  string // the mirrors of its suites, as sources.list
	// Arch is the architecture that packages are taken for, "arm64"; empty is this machine's.
	Arch string
}

// arch is the architecture by name: for bundles, Debian's names are Go's.
func (r Release) arch() string { return cmp.Or(r.Arch, runtime.GOARCH) }

// packageList is what apt says of a list of packages that an update would fetch.
var packageList = regexp.MustCompile(`(?m)^'(\S+)/dists/(\S+)/main/binary-\w+/Packages`)

// HostRelease is the Debian release of this machine and the mirrors that its apt is configured
// with, read below root ("/" for the machine itself). It leaves out all suites but the release's
// own, and mirrors that others than Debian sign do not work.
func HostRelease(root string) (Release, error) {
	codename, err := readCodename(filepath.Join(root, "etc/os-release"))
	if err != nil {
		return Release{}, err
	}
	out, err := exec.Command("apt-get", "-o", "Dir="+root, "--print-uris", "update").Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, e.Stderr)
	}
	if err != nil {
		return Release{}, fmt.Errorf("ask apt for its mirrors: %w", err)
	}
	suites := []string{codename, codename + "-updates", codename + "-security", codename + "/updates"}
	var lines []string
	for _, found := range packageList.FindAllStringSubmatch(string(out), -1) {
		line := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, found[1], found[2])
		if slices.Contains(suites, found[2]) && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return Release{}, fmt.Errorf("read apt sources: no mirror for Debian %s in %s", codename, filepath.Join(root, "etc/apt"))
	}
	return Release{Codename: codename, Sources: strings.Join(lines, "")}, nil
}

func readCodename(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("find the Debian release: %w", err)
	}
	defer func() { _ = f.Close() }()
	var id, codename string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), "=")
		switch value = strings.Trim(value, `"'`); name {
		case "ID":
			id = value
		case "VERSION_CODENAME":
			codename = value
		}
	}
	if id != "debian" || codename == "" {
		return "", fmt.Errorf("find the Debian release: %s says ID=%q VERSION_CODENAME=%q, not a Debian release", path, id, codename)
	}
	return codename, nil
}
