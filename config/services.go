package config

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/slipway-sh/slipway/config/document"
)

// How the connection to a mail server is encrypted.
const (
	StartTLS = "starttls" // after it has been established
	Implicit = "implicit" // from the beginning
	Plain    = "none"     // not at all
)

// SMTP is a mail server.
type SMTP struct {
	Host     string    `json:"host,omitempty" interpolate:"true" jsonschema:"example=mail.example.com" jsonschema_description:"Host of the mail server; no mail is sent when left out."`
	Port     int       `json:"port,omitempty" jsonschema:"minimum=1,maximum=65535,default=587,example=25" jsonschema_description:"Port of the mail server."`
	From     string    `json:"from,omitempty" interpolate:"true" jsonschema:"example=platform@example.com" jsonschema_description:"Address of the sender; required with a host."`
	TLS      string    `json:"tls,omitempty" jsonschema:"enum=starttls,enum=implicit,enum=none,default=starttls,example=implicit" jsonschema_description:"Encryption of the connection: starttls, implicit (from its start) or none."`
	Username string    `json:"username,omitempty" interpolate:"true" jsonschema:"example=platform" jsonschema_description:"User name; no login when left out."`
	Password SecretRef `json:"password,omitempty" jsonschema:"example=env:SMTP_PASSWORD" jsonschema_description:"Reference to the password; required with a user name."`
}

// Observability is where metrics go.
type Observability struct {
	Endpoint string    `json:"endpoint,omitempty" interpolate:"true" jsonschema:"example=https://metrics.example.com/api/v1/write" jsonschema_description:"URL for Prometheus remote write; no metrics are sent when left out."`
	Username string    `json:"username,omitempty" interpolate:"true" jsonschema:"example=platform" jsonschema_description:"User name; no login when left out."`
	Password SecretRef `json:"password,omitempty" jsonschema:"example=env:METRICS_PASSWORD" jsonschema_description:"Reference to the password; required with a user name."`
	CA       string    `json:"ca,omitempty" jsonschema:"example=-----BEGIN CERTIFICATE-----\\nMIIB…\\n-----END CERTIFICATE-----\\n" jsonschema_description:"CA certificates for the endpoint, PEM; public CAs when left out."`
}

// SetDefaults sets the default port. If there is no mail server, complete removes it.
func (s *SMTP) SetDefaults() { s.Port = 587 }

// complete fills in defaults that depend on whether there is a mail server.
func (s *SMTP) complete() {
	if s.Host == "" {
		if s.Port == 587 {
			s.Port = 0
		}
		return
	}
	if s.TLS == "" {
		s.TLS = StartTLS
	}
}

func (s *SMTP) problems(l *document.List) {
	if s.Host == "" {
		noValues(l, "smtp.host", "smtp.", "none without smtp.host",
			map[string]bool{"port": s.Port != 0, "from": s.From != "", "tls": s.TLS != "", "username": s.Username != "", "password": s.Password != ""})
		return
	}
	if !domainRE.MatchString(s.Host) && !hostRE.MatchString(s.Host) {
		l.Add("smtp.host", document.Quote(s.Host), "a host such as mail.example.com, without scheme and port")
	}
	if s.Port < 1 || s.Port > 65535 {
		l.Add("smtp.port", strconv.Itoa(s.Port), "a TCP port, 1 to 65535")
	}
	if !isMail(s.From) {
		l.Add("smtp.from", document.Shown(s.From), "a mail address such as platform@example.com")
	}
	l.Check("smtp", s)
	login(l, "smtp", s.Username, s.Password)
}

func (o *Observability) problems(l *document.List) {
	if o.Endpoint == "" {
		noValues(l, "observability.endpoint", "observability.", "none without observability.endpoint",
			map[string]bool{"username": o.Username != "", "password": o.Password != "", "ca": o.CA != ""})
		return
	}
	checkURL(l, "observability.endpoint", o.Endpoint, "a URL such as https://metrics.example.com/api/v1/write", "; they go into username and password", false)
	if o.CA != "" {
		checkCertificates(l, "observability.ca", o.CA, "")
	}
	login(l, "observability", o.Username, o.Password)
}

// checkURL validates the URL of an HTTP server; a bare one has neither path nor query.
// login says where a user name and a password belong.
func checkURL(l *document.List, field, text, want, login string, bare bool) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		l.Add(field, "something that is not a URL", want)
	case u.User != nil:
		l.Add(field, "a URL with user or password", want+login)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Fragment != "", bare && (u.Path != "" && u.Path != "/" || u.RawQuery != ""):
		l.Add(field, "another kind of URL", want)
	case !isPort(u.Port()):
		l.Add(field, "a URL with a port out of range", want)
	}
}

// isPort reports whether the port of a URL is empty or in range.
func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && n > 0 && n < 1<<16
}

// login validates a user name with its password.
func login(l *document.List, section, user string, password SecretRef) {
	switch {
	case user == "" && password != "":
		l.Follow(section+".username", section+".password", "a value", fmt.Sprintf("none without %s.username", section))
	case user != "":
		password.problem(l, section+".password", "password")
	}
}
