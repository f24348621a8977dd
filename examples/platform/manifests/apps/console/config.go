package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

// ServerConfig is what the environment tells the server.
type ServerConfig struct {
	Listen      string // LISTEN, host:port; default ":8443"
	Certificate string // TLS_CERTIFICATE_FILE, PEM; read for each connection, so that a new one is used at once
	Key         string // TLS_KEY_FILE, PEM
	PublicURL   string // PUBLIC_URL, as browsers see the console: "https://console.example.com"
	Title       string // TITLE, heading of the page; default "Console"
	ClusterID   string // CLUSTER_ID, shown to who has signed in; optional
	Licensee    string // LICENSE_HOLDER, shown to everybody; optional
	Issuer      IssuerConfig
	Database    Database
	SessionKey  Secret // SESSION_KEY_FILE or SESSION_KEY: 64 hexadecimal digits
}

// IssuerConfig is how the console is known to the identity service.
type IssuerConfig struct {
	URL          string // ISSUER: "https://dex.example.com:5556"
	CA           string // CA_FILE: certificates that it trusts besides the system's, PEM; optional
	ClientID     string // CLIENT_ID
	ClientSecret Secret // CLIENT_SECRET_FILE or CLIENT_SECRET
}

// Database is how the database is reached.
type Database struct {
	Host     string // DATABASE_HOST
	Port     string // DATABASE_PORT; default "5432"
	Name     string // DATABASE_NAME
	User     string // DATABASE_USER
	Password Secret // DATABASE_PASSWORD_FILE or DATABASE_PASSWORD
}

// String names the database without its password.
func (d Database) String() string {
	return d.User + "@" + net.JoinHostPort(d.Host, d.Port) + "/" + d.Name
}

// AdminConfig is what the environment tells create-admin.
type AdminConfig struct {
	API      string // DEX_API, host:port of Dex's gRPC API
	CA       string // CA_FILE: certificates that it trusts besides the system's, PEM; optional
	Email    string // ADMIN_EMAIL, which the administrator signs in with
	Name     string // ADMIN_NAME
	ID       string // ADMIN_ID, which never changes
	Password Secret // ADMIN_PASSWORD_FILE or ADMIN_PASSWORD
}

// Secret is a value that no log shows.
type Secret string

// String hides the value.
func (Secret) String() string { return "[secret]" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "[secret]" }

// environment reads the settings of a command, and collects everything that is wrong with
// them.
type environment struct {
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	problems []error
}

// ServerConfigFrom reads the settings of the server. The error is about everything that is
// wrong.
func ServerConfigFrom(getenv func(string) string) (ServerConfig, error) {
	e := &environment{getenv: getenv, readFile: os.ReadFile}
	cfg := ServerConfig{
		Listen:      e.text("LISTEN", ":8443"),
		Certificate: e.text("TLS_CERTIFICATE_FILE", ""),
		Key:         e.text("TLS_KEY_FILE", ""),
		PublicURL:   strings.TrimSuffix(e.address("PUBLIC_URL"), "/"),
		Title:       e.text("TITLE", "Console"),
		ClusterID:   e.optional("CLUSTER_ID"),
		Licensee:    e.optional("LICENSE_HOLDER"),
		Issuer: IssuerConfig{
			URL:          e.address("ISSUER"),
			CA:           e.optional("CA_FILE"),
			ClientID:     e.text("CLIENT_ID", ""),
			ClientSecret: e.secret("CLIENT_SECRET"),
		},
		Database:   e.database(),
		SessionKey: e.secret("SESSION_KEY"),
	}
	return cfg, errors.Join(e.problems...)
}

// DatabaseFrom reads how the database is reached.
func DatabaseFrom(getenv func(string) string) (Database, error) {
	e := &environment{getenv: getenv, readFile: os.ReadFile}
	d := e.database()
	return d, errors.Join(e.problems...)
}

// AdminConfigFrom reads the settings of create-admin.
func AdminConfigFrom(getenv func(string) string) (AdminConfig, error) {
	e := &environment{getenv: getenv, readFile: os.ReadFile}
	cfg := AdminConfig{
		API:      e.text("DEX_API", ""),
		CA:       e.optional("CA_FILE"),
		Email:    e.text("ADMIN_EMAIL", ""),
		Name:     e.text("ADMIN_NAME", ""),
		ID:       e.text("ADMIN_ID", ""),
		Password: e.secret("ADMIN_PASSWORD"),
	}
	return cfg, errors.Join(e.problems...)
}

func (e *environment) database() Database {
	return Database{
		Host:     e.text("DATABASE_HOST", ""),
		Port:     e.text("DATABASE_PORT", "5432"),
		Name:     e.text("DATABASE_NAME", ""),
		User:     e.text("DATABASE_USER", ""),
		Password: e.secret("DATABASE_PASSWORD"),
	}
}

func (e *environment) optional(name string) string { return strings.TrimSpace(e.getenv(name)) }

// text is a setting that must be there unless it has a fallback.
func (e *environment) text(name, fallback string) string {
	if v := e.optional(name); v != "" {
		return v
	}
	if fallback == "" {
		e.problems = append(e.problems, fmt.Errorf("%s is not set", name))
	}
	return fallback
}

// address is a URL with https.
func (e *environment) address(name string) string {
	v := e.text(name, "")
	if u, err := url.Parse(v); v != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		e.problems = append(e.problems, fmt.Errorf("%s: %q is no URL with https", name, v))
	}
	return v
}

// secret is a setting that stands in a file, which <name>_FILE names, or in the
// environment.
func (e *environment) secret(name string) Secret {
	file, plain := e.getenv(name+"_FILE"), e.getenv(name)
	switch {
	case file != "" && plain != "":
		e.problems = append(e.problems, fmt.Errorf("%s_FILE and %s are both set", name, name))
	case file != "":
		content, err := e.readFile(file)
		value := Secret(strings.TrimRight(string(content), "\r\n"))
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = fmt.Errorf("%s does not exist", file)
		case err == nil && value == "":
			err = fmt.Errorf("%s is empty", file)
		}
		if err != nil {
			e.problems = append(e.problems, fmt.Errorf("%s_FILE: %w", name, err))
			return ""
		}
		return value
	case plain != "":
		return Secret(plain)
	default:
		e.problems = append(e.problems, fmt.Errorf("neither %s_FILE nor %s is set", name, name))
	}
	return ""
}
