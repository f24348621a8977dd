package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Secret is text that no log shows.
type Secret string

// String returns no part of the secret.
func (Secret) String() string { return "(secret)" }

// ServerConfig is what the web app is configured by.
type ServerConfig struct {
	Listen     string // address
	PublicURL  string // where browsers find the portal, without a slash at its end
	SessionKey Secret // 64 hexadecimal digits
	Issuer     IssuerConfig
	Shown      Shown
}

// IssuerConfig is how the portal reaches who its users sign in at.
type IssuerConfig struct {
	URL          string
	Address      string // host:port at which it answers; empty: as its name resolves
	ClientID     string
	ClientSecret Secret
	CA           []string // folders with certificates to trust besides the system's; they may be missing
}

// Shown is what the page shows.
type Shown struct {
	Cluster string
	Addons  []Addon // sorted by name
}

// Addon is one that users find behind the gateway.
type Addon struct{ Name, URL string }

// reader reads the environment, and notes everything that is wrong with it.
type reader struct {
	getenv func(string) string
	errs   []error
}

func (r *reader) text(name string) string {
	v := r.getenv(name)
	if v == "" {
		r.errs = append(r.errs, fmt.Errorf("%s: want a value", name))
	}
	return v
}

// url reads an absolute URL, without a slash at its end.
func (r *reader) url(name string) string {
	v := strings.TrimSuffix(r.text(name), "/")
	if u, err := url.Parse(v); v != "" && (err != nil || u.Host == "") {
		r.errs = append(r.errs, fmt.Errorf("%s: want a URL", name))
	}
	return v
}

// file reads the file that a variable names, without white space around its content.
func (r *reader) file(name string) string {
	path := r.text(name)
	if path == "" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", name, err))
	}
	return strings.TrimSpace(string(text))
}

// json reads the file that a variable names into v.
func (r *reader) json(name string, v any) {
	if text := r.file(name); text != "" {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			r.errs = append(r.errs, fmt.Errorf("%s: %w", name, err))
		}
	}
}

// ServerConfigFrom reads LISTEN, PUBLIC_URL, ISSUER, ISSUER_ADDRESS, CLIENT_ID,
// CLIENT_SECRET_FILE, SESSION_KEY_FILE, CA_DIRS (separated by colons), CLUSTER and ADDONS_FILE,
// JSON of addresses by name. The error names everything that is wrong.
func ServerConfigFrom(getenv func(string) string) (ServerConfig, error) {
	r := reader{getenv: getenv}
	c := ServerConfig{
		Listen: r.text("LISTEN"), PublicURL: r.url("PUBLIC_URL"), SessionKey: Secret(r.file("SESSION_KEY_FILE")),
		Issuer: IssuerConfig{
			URL: r.url("ISSUER"), Address: getenv("ISSUER_ADDRESS"),
			ClientID: r.text("CLIENT_ID"), ClientSecret: Secret(r.file("CLIENT_SECRET_FILE")), CA: filepath.SplitList(getenv("CA_DIRS")),
		},
		Shown: Shown{Cluster: getenv("CLUSTER")},
	}
	addons := map[string]string{}
	r.json("ADDONS_FILE", &addons)
	for name, address := range addons {
		c.Shown.Addons = append(c.Shown.Addons, Addon{name, address})
	}
	slices.SortFunc(c.Shown.Addons, func(a, b Addon) int { return strings.Compare(a.Name, b.Name) })
	return c, errors.Join(r.errs...)
}

// RegisterConfig is what users and clients are made of.
type RegisterConfig struct {
	API       string // host:port of Dex's gRPC API
	CA        string // file with what to trust for it
	Users     []User // sorted by name
	PortalURL string
	Namespace string // of the Secret
	Secret    string // its name
}

// User is a person who signs in.
type User struct {
	Name, Email string
	Password    Secret
}

// RegisterConfigFrom reads DEX_API, CA_FILE, USERS_FILE (JSON, by name), USERS_DOMAIN,
// PASSWORDS_DIR (a file for each user), PORTAL_URL, NAMESPACE and SECRET. The error names
// everything that is wrong.
func RegisterConfigFrom(getenv func(string) string) (RegisterConfig, error) {
	r := reader{getenv: getenv}
	c := RegisterConfig{
		API: r.text("DEX_API"), CA: r.text("CA_FILE"), PortalURL: r.url("PORTAL_URL"),
		Namespace: r.text("NAMESPACE"), Secret: r.text("SECRET"),
	}
	users := map[string]json.RawMessage{}
	r.json("USERS_FILE", &users)
	domain, passwords := r.text("USERS_DOMAIN"), r.text("PASSWORDS_DIR")
	for name := range users {
		text, err := os.ReadFile(filepath.Join(passwords, name))
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("PASSWORDS_DIR: %w", err))
		}
		c.Users = append(c.Users, User{Name: name, Email: name + "@" + domain, Password: Secret(text)})
	}
	slices.SortFunc(c.Users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return c, errors.Join(r.errs...)
}
