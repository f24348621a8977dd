package debian

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Source is one suite of one Debian mirror.
type Source struct {
	URI        string
	Suite      string
	Components []string
	SignedBy   string // path of the keyring; may be empty
}

// Line is the source in the one-line form of sources.list.
func (s Source) Line() string {
	options := ""
	if s.SignedBy != "" {
		options = "[signed-by=" + s.SignedBy + "] "
	}
	return fmt.Sprintf("deb %s%s %s %s", options, s.URI, s.Suite, strings.Join(s.Components, " "))
}

// Release is what a machine says about its Debian.
type Release struct {
	Codename string // such as "bookworm"
	Sources  []Source
	// Arch is the architecture that packages are taken for, "arm64"; empty is this machine's.
	Arch string
}

// arch is the architecture by name. Debian calls those of a bundle as Go does.
func (r Release) arch() string { return cmp.Or(r.Arch, runtime.GOARCH) }

// HostRelease is the Debian release of this machine and the mirrors that its apt is
// configured with, read below root ("/" for the machine itself). Sources of
// anybody else are left out: what counts is the release's own suites.
func HostRelease(root string) (Release, error) {
	codename, err := readCodename(filepath.Join(root, "etc/os-release"))
	if err != nil {
		return Release{}, err
	}
	files := []string{filepath.Join(root, "etc/apt/sources.list")}
	parts, err := filepath.Glob(filepath.Join(root, "etc/apt/sources.list.d/*"))
	if err != nil {
		return Release{}, fmt.Errorf("list apt sources: %w", err)
	}
	slices.Sort(parts)
	rel := Release{Codename: codename}
	for _, file := range append(files, parts...) {
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Release{}, fmt.Errorf("read apt sources: %w", err)
		}
		var found []Source
		switch filepath.Ext(file) {
		case ".list":
			found = ParseList(string(b))
		case ".sources":
			found = ParseDeb822(string(b))
		}
		for _, s := range found {
			if own(s, codename) {
				rel.Sources = append(rel.Sources, s)
			}
		}
	}
	if len(rel.Sources) == 0 {
		return Release{}, fmt.Errorf("read apt sources: no mirror for Debian %s in %s", codename, filepath.Join(root, "etc/apt"))
	}
	return rel, nil
}

// own tells a suite of the release itself from what others publish for it.
func own(s Source, codename string) bool {
	suites := []string{codename, codename + "-updates", codename + "-security", codename + "/updates"}
	return slices.Contains(suites, s.Suite) && slices.Contains(s.Components, "main")
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

// ParseList reads the one-line form: "deb [options] uri suite component…".
// Source packages, comments and lines that do not parse are left out.
func ParseList(text string) []Source {
	var all []Source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(line, "deb ")
		if !ok {
			continue
		}
		var s Source
		rest = strings.TrimSpace(rest)
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			options, after, ok := strings.Cut(inner, "]")
			if !ok {
				continue
			}
			for _, o := range strings.Fields(options) {
				if name, value, ok := strings.Cut(o, "="); ok && strings.EqualFold(name, "signed-by") {
					s.SignedBy = value
				}
			}
			rest = after
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		s.URI, s.Suite, s.Components = strings.TrimRight(fields[0], "/"), fields[1], fields[2:]
		all = append(all, s)
	}
	return all
}

// comment matches a comment line of a paragraph, which a MIME header does not have.
var comment = regexp.MustCompile(`(?m)^#.*\n?`)

// ParseDeb822 reads the paragraph form ("Types:", "URIs:", "Suites:" …): one
// Source for each URI and suite of a paragraph that is enabled and has "deb".
func ParseDeb822(text string) []Source {
	var all []Source
	paragraphs := textproto.NewReader(bufio.NewReader(strings.NewReader(comment.ReplaceAllString(text, ""))))
	for {
		fields, err := paragraphs.ReadMIMEHeader()
		values := func(name string) []string { return strings.Fields(fields.Get(name)) }
		off := slices.Contains([]string{"no", "false", "0"}, strings.ToLower(fields.Get("Enabled")))
		if slices.Contains(values("Types"), "deb") && !off {
			signedBy := ""
			// A key written into the file instead of a path is no keyring.
			if v := values("Signed-By"); len(v) == 1 && filepath.IsAbs(v[0]) {
				signedBy = v[0]
			}
			for _, uri := range values("URIs") {
				for _, suite := range values("Suites") {
					all = append(all, Source{
						URI: strings.TrimRight(uri, "/"), Suite: suite, Components: values("Components"), SignedBy: signedBy,
					})
				}
			}
		}
		// A line that is none of a field is apt's to complain about.
		if malformed := textproto.ProtocolError(""); err != nil && !errors.As(err, &malformed) {
			return all
		}
	}
}
