package config

import (
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// Git is a repository of the user's from which the platform's apps are installed, in
// place of one on a git server of the platform's own. Nothing is written to it.
type Git struct {
	URL        string    `json:"url,omitempty" interpolate:"true" jsonschema:"example=https://git.example.com/team/platform.git" jsonschema_description:"Repository with the GitOps tree: https://…, ssh://git@host/path or git@host:path; the platform's own Git server when left out."`
	Revision   string    `json:"revision,omitempty" interpolate:"true" jsonschema:"default=main,example=v1.2.0" jsonschema_description:"Branch, tag or commit. Argo CD follows a branch and installs each push."`
	Path       string    `json:"path,omitempty" jsonschema:"example=platform" jsonschema_description:"Folder of the repository with the tree; its top when left out."`
	Username   string    `json:"username,omitempty" interpolate:"true" jsonschema:"example=argocd" jsonschema_description:"User name for HTTPS; no login when left out."`
	Password   SecretRef `json:"password,omitempty" jsonschema:"example=env:GIT_TOKEN" jsonschema_description:"Reference to the password or token; required with a user name."`
	SSHKey     SecretRef `json:"sshKey,omitempty" jsonschema:"example=file:~/.ssh/deploy_key" jsonschema_description:"Reference to the private key for SSH."`
	KnownHosts string    `json:"knownHosts,omitempty" jsonschema:"example=git.example.com ssh-ed25519 AAAA…" jsonschema_description:"Lines of known_hosts for the server, required with SSH: ssh-keyscan HOST prints them."`
	CA         string    `json:"ca,omitempty" jsonschema:"example=-----BEGIN CERTIFICATE-----\\nMIIB…\\n-----END CERTIFICATE-----\\n" jsonschema_description:"CA certificates for the server, PEM; public CAs when left out."`
}

// SetDefaults sets the default revision. Without a repository, complete removes it.
func (g *Git) SetDefaults() { g.Revision = "main" }

// complete removes the default of a repository that there is not.
func (g *Git) complete() {
	if g.URL == "" && g.Revision == "main" {
		g.Revision = ""
	}
}

// SSH reports whether the repository is read by SSH.
func (g *Git) SSH() bool {
	return strings.HasPrefix(g.URL, "ssh://") || !strings.Contains(g.URL, "://") && g.URL != ""
}

// Host returns the server's host, with a port where the URL has one.
func (g *Git) Host() string {
	if m := scpRE.FindStringSubmatch(g.URL); m != nil {
		return m[1]
	}
	u, err := url.Parse(g.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// The names of a user and of a host. git, ssh and the shell take others as options or commands.
const (
	gitUser = `[A-Za-z0-9_][A-Za-z0-9._-]*`
	gitHost = `([\pL\pN_][\pL\pN._-]*|\[[0-9a-fA-F:.]+\])`
)

var (
	scpRE       = regexp.MustCompile(`^` + gitUser + `@([\pL\pN_][\pL\pN._-]*):(/[^/:\x00-\x20]|[^-/:\x00-\x20])[^:\x00-\x1f]*$`)
	sshRE       = regexp.MustCompile(`^ssh://(` + gitUser + `@)?` + gitHost + `(:[0-9]+)?/[^\x00-\x1f]+$`)
	gitHostRE   = regexp.MustCompile(`^` + gitHost + `(:[0-9]+)?$`)
	knownHostRE = regexp.MustCompile(`^(@(cert-authority|revoked)[ \t]+)?[^@\s]\S*[ \t]+(ssh|ecdsa|sk)-\S+[ \t]+[A-Za-z0-9+/=]+([ \t].*)?$`)
	// notInRef matches what git check-ref-format forbids in the name of a branch or tag.
	notInRef = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)\.|\.lock(/|$)|^[-/]|[/.]$|^@?$`)
)

// isRevision reports whether text can be a branch, a tag or a commit, and no option of git.
func isRevision(text string) bool {
	return len(text) < 256 && utf8.ValidString(text) && !notInRef.MatchString(text)
}

// isFolder reports whether text is a folder of a repository: a path without . and .. in it.
func isFolder(text string) bool {
	return text != "." && fs.ValidPath(text) && !strings.HasPrefix(text, "-") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

const gitWant = "a repository such as https://git.example.com/team/platform.git, ssh://git@git.example.com/team/platform.git or git@git.example.com:team/platform.git; an IPv6 address only as in ssh://git@[2001:db8::1]/team/platform.git"

func (g *Git) problems(l *document.List) {
	if g.URL == "" {
		noValues(l, "git.url", "git.", "none without git.url", map[string]bool{
			"revision": g.Revision != "", "path": g.Path != "", "username": g.Username != "", "password": g.Password != "",
			"sshKey": g.SSHKey != "", "knownHosts": g.KnownHosts != "", "ca": g.CA != "",
		})
		return
	}
	if !isRevision(g.Revision) {
		l.Add("git.revision", document.Shown(g.Revision), "a branch, tag or commit, by a name that git takes")
	}
	if g.Path != "" && !isFolder(g.Path) {
		l.Add("git.path", document.Quote(g.Path), "a folder of the repository, without .. and without / at its ends")
	}
	if !g.SSH() {
		g.httpProblems(l)
		return
	}
	if u, err := url.Parse(g.URL); !scpRE.MatchString(g.URL) && (err != nil || !sshRE.MatchString(g.URL) || len(u.Path) < 2 || !isPort(u.Port())) {
		l.Add("git.url", "another kind of URL", gitWant)
	}
	g.SSHKey.problem(l, "git.sshKey", "private key")
	noValues(l, "git.url", "git.", "none with SSH", map[string]bool{"username": g.Username != "", "password": g.Password != "", "ca": g.CA != ""})
	if g.KnownHosts == "" {
		l.Add("git.knownHosts", "nothing", "the server's lines of known_hosts: "+g.keyscan())
	}
	for line := range strings.Lines(g.KnownHosts) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !knownHostRE.MatchString(line) {
			l.Add("git.knownHosts", "a line that is not in the form of known_hosts", "lines such as git.example.com ssh-ed25519 AAAA…")
			break
		}
	}
}

// keyscan is the command that prints the server's lines of known_hosts.
func (g *Git) keyscan() string {
	u, err := url.Parse("ssh://" + g.Host())
	switch {
	case err != nil || !gitHostRE.MatchString(u.Host):
		return "ssh-keyscan HOST"
	case u.Port() != "":
		return "ssh-keyscan -p " + fault.Quote(u.Port()) + " " + fault.Quote(u.Hostname())
	}
	return "ssh-keyscan " + fault.Quote(u.Hostname())
}

// httpProblems validates a repository that is read by HTTPS.
func (g *Git) httpProblems(l *document.List) {
	u, err := url.Parse(g.URL)
	switch {
	case err != nil:
		l.Add("git.url", "something that is not a URL", gitWant)
	case u.User != nil:
		l.Add("git.url", "a URL with user or password", gitWant+"; they go into username and password")
	case u.Scheme != "https", !gitHostRE.MatchString(u.Host), len(u.Path) < 2, u.RawQuery != "", u.Fragment != "", !isPort(u.Port()):
		l.Add("git.url", "another kind of URL", gitWant)
	}
	noValues(l, "git.url", "git.", "none with HTTPS", map[string]bool{"sshKey": g.SSHKey != "", "knownHosts": g.KnownHosts != ""})
	if g.CA != "" {
		checkCertificates(l, "git.ca", g.CA, "")
	}
	login(l, "git", g.Username, g.Password)
}
