package config

import (
	"regexp"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// GitRelease is a platform release in a Git repository.
type GitRelease struct {
	URL     string // of the repository
	Folder  string // of the release in it; empty: its top
	Version string // tag, branch or commit
	Digest  string // that the release must have, "sha256:…"; empty: any
}

// String is the release as platform.release names it.
func (g GitRelease) String() string {
	out := g.URL
	if g.Folder != "" {
		out += "//" + g.Folder
	}
	if out += "@" + g.Version; g.Digest != "" {
		out += "#" + g.Digest
	}
	return out
}

// ReleaseInGit returns the platform release in a Git repository that the configuration
// names, if it names one.
func (c *Config) ReleaseInGit() (GitRelease, bool) {
	scheme, rest, isURL := strings.Cut(c.Platform.Release, "://")
	if !isURL {
		return GitRelease{}, false
	}
	host, path, _ := strings.Cut(rest, "/") // the user of an SSH URL comes before an @, too
	path, version, found := strings.Cut(path, "@")
	if !found {
		return GitRelease{}, false
	}
	digest := ""
	if at := strings.LastIndex(version, "#sha256:"); at >= 0 {
		version, digest = version[:at], version[at+1:]
	}
	repository, folder, _ := strings.Cut(path, "//")
	return GitRelease{URL: scheme + "://" + host + "/" + repository, Folder: folder, Version: version, Digest: digest}, true
}

// Has reports whether the file has a field.
func (c *Config) Has(field string) bool { return c.doc != nil && c.doc.Has(field) }

const gitReleaseWant = "a release in a Git repository such as https://git.example.com/team/platform.git//releases/one@v1.2.0, with #sha256:<64 hex digits> for one that must have this digest"

var (
	gitURLRE    = regexp.MustCompile(`^(https|http|ssh)://(` + gitUser + `@)?` + gitHost + `(:([0-9]+))?/[^\s@#?]+$`)
	gitDigestRE = regexp.MustCompile(`^(sha256:[0-9a-f]{64})?$`)
)

// gitReleaseProblems validates a release that is named by a URL.
func (p *Platform) gitReleaseProblems(l *document.List) {
	g, ok := (&Config{Platform: *p}).ReleaseInGit()
	host, _, _ := strings.Cut(strings.SplitAfterN(p.Release, "://", 2)[1], "/")
	at := gitURLRE.FindStringSubmatch(g.URL)
	switch {
	case ok && strings.Contains(host, "@") && !strings.HasPrefix(p.Release, "ssh://"):
		l.Add("platform.release", "a URL with user or password", gitReleaseWant)
	case !ok && strings.Contains(p.Release, "?"), strings.Contains(g.URL, "?"):
		l.Add("platform.release", "a URL with a query", gitReleaseWant)
	case !ok && gitURLRE.MatchString(p.Release):
		l.Add("platform.release", "a URL without a version", gitReleaseWant)
	case at == nil || !isPort(at[len(at)-1]) || !gitDigestRE.MatchString(g.Digest), g.Folder != "" && !isFolder(g.Folder):
		l.Add("platform.release", "another kind of URL", gitReleaseWant)
	case !isRevision(g.Version):
		l.Add("platform.release", document.Shown(g.Version)+" as version", gitReleaseWant+": a branch, tag or commit, by a name that git takes")
	case strings.HasPrefix(g.URL, "http://") && g.Digest == "":
		l.Add("platform.release", "a release by plain HTTP, which anybody on the way can change", "https, or the release's digest: #sha256:<64 hex digits>")
	}
}
