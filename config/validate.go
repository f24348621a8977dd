package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/imageref"
)

const (
	labelPattern = `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`
	refPattern   = `^(env:[A-Za-z_][A-Za-z0-9_]*|(file|cmd):[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?|vault:[^\x00-\x20\x7f.?]+\.[^\x00-\x20\x7f.?]+|op:[^\x00-\x1f\x7f/]+(/[^\x00-\x1f\x7f/]+){2,3})$`
)

var (
	domainRE    = regexp.MustCompile(`^` + labelPattern + `(\.` + labelPattern + `)+$`)
	componentRE = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$`)
	refRE       = regexp.MustCompile(refPattern)
	versionRE   = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	hostRE      = regexp.MustCompile(`^` + labelPattern + `$|^[0-9a-f:]*:[0-9a-f:]*$`)
)

// IsName reports whether name is a valid name for a deployment.
func IsName(name string) bool {
	l := new(document.List)
	l.Check("", Global{Name: name})
	return !slices.ContainsFunc(*l, func(p Problem) bool { return p.Field == "name" })
}

// maxDomain leaves room for an app's name before the domain.
const maxDomain = 200

// problem adds what is wrong with a timeout.
func (d Duration) problem(l *document.List, field string) {
	if time.Duration(d) < time.Second || time.Duration(d) > 24*time.Hour {
		l.Add(field, d.String(), "a duration from 1s to 24h")
	}
}

// problems validates c, without lines.
func (c *Config) problems(providers []string, opts Options) []Problem {
	l := new(document.List)
	l.Check("global", c.Global)
	l.Check("tls", c.TLS)
	l.Check("advanced", c.Advanced)
	l.Check("advanced.save", c.Advanced.Save)
	if c.Advanced.Save.Key != "" {
		c.Advanced.Save.Key.problem(l, "advanced.save.key", "private key")
	}
	if len(providers) > 0 && !slices.Contains(providers, c.Provider) {
		l.Add("provider", document.Quote(c.Provider), document.OneOf(providers...))
	}
	if n := len(c.Global.Domain); n > maxDomain {
		l.Add("global.domain", fmt.Sprintf("a domain of %d characters", n), fmt.Sprintf("at most %d, so that the names of apps fit before it", maxDomain))
	} else if !domainRE.MatchString(c.Global.Domain) {
		l.Add("global.domain", document.Quote(c.Global.Domain), "a domain in lower case such as platform.example.com")
	}
	if email := c.Global.Admin.Email; email != "admin@"+c.Global.Domain && !isMail(email) {
		l.Add("global.admin.email", document.Quote(email), "a mail address such as admin@example.com")
	}
	if r := c.Advanced.Registry; r != "" && !imageref.IsRegistry(r) {
		l.Add("advanced.registry", document.Shown(r), "host[:port][/path] such as registry.example.com/slipway, without scheme and tag")
	}
	c.TLS.problems(l)
	c.Proxy.problems(l)
	c.SMTP.problems(l)
	c.Observability.problems(l)
	c.Git.problems(l)
	c.platformProblems(l)
	c.State.problems(l, opts)
	c.Advanced.Timeouts.App.problem(l, "advanced.timeouts.app")
	c.Advanced.Timeouts.Step.problem(l, "advanced.timeouts.step")
	slices.SortStableFunc(*l, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	return *l
}

// noValues adds a problem for each field of a section that is set, unless cause has one.
func noValues(l *document.List, cause, section, want string, set map[string]bool) {
	for field, is := range set {
		if is {
			l.Follow(cause, section+field, "a value", want)
		}
	}
}

func (t *TLS) problems(l *document.List) {
	if t.Mode == SelfSigned {
		noValues(l, "tls.mode", "tls.", "none with mode self-signed; or set tls.mode to given", map[string]bool{"certificate": t.Certificate != "", "key": t.Key != ""})
	}
	if t.CA != "" {
		checkCertificates(l, "tls.ca", t.CA, "")
	}
	if t.Mode != UserCertificate {
		return
	}
	checkCertificates(l, "tls.certificate", t.Certificate, ", the server's first")
	t.Key.problem(l, "tls.key", "private key")
}

// checkCertificates adds a problem unless text is PEM certificates.
func checkCertificates(l *document.List, field, text, want string) {
	if _, err := certificate.Parse([]byte(text)); err != nil {
		l.Add(field, err.Error(), "PEM certificates (-----BEGIN CERTIFICATE-----)"+want)
	}
}

func (p *Proxy) problems(l *document.List) {
	for field, value := range map[string]string{"proxy.http": p.HTTP, "proxy.https": p.HTTPS} {
		if value != "" {
			checkURL(l, field, value, "a URL such as http://proxy.example.com:3128", ", without them", true)
		}
	}
	if strings.ContainsFunc(p.NoProxy, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		l.Add("proxy.noProxy", document.Quote(p.NoProxy), "hosts separated by commas, without spaces")
	}
}

func (c *Config) platformProblems(l *document.List) {
	p := &c.Platform
	for _, name := range slices.Sorted(maps.Keys(p.Secrets)) {
		p.Secrets[name].problem(l, "platform.secrets."+name, "secret")
	}
	if strings.Contains(p.Release, "://") {
		p.gitReleaseProblems(l)
	} else if scpRE.MatchString(p.Release) {
		l.Add("platform.release", "an SSH address that is no URL", "ssh://git@git.example.com/team/platform.git@v1.2.0, with the folder and the version as in "+gitReleaseWant)
	} else if !strings.Contains(p.Release, "/") {
		l.Match("platform.release", p.Release, versionRE, "a version such as 1.0.0, or a path with a slash such as ./my-platform")
	} else if strings.ContainsFunc(p.Release, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		l.Add("platform.release", document.Quote(p.Release), "a path without control characters")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Components)) {
		field := "platform.components." + name
		if !componentRE.MatchString(name) {
			l.Add(field, document.QuoteKey(name), "the name of a component: lower-case letters, digits and hyphens, starting with a letter")
			continue
		}
		if choice := p.Components[name]; choice.Enabled == nil && choice.Values == nil {
			l.Follow(field, field+".enabled", "nothing", "true or false, or values of its chart")
		} else if choice.Values != nil && !isObject(choice.Values) {
			l.Add(field+".values", c.doc.Kind(field+".values"), "a mapping")
		}
	}
	if p.Settings != nil && !isObject(p.Settings) {
		l.Add("platform.settings", c.doc.Kind("platform.settings"), "a mapping")
	}
}

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func isMail(s string) bool {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" || len(s) > 254 {
		return false
	}
	return !strings.ContainsAny(s, "\" []")
}
