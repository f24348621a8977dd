// Package config is the user's configuration file: its types, defaults, JSON schema,
// migrations and validation. A loaded Config is complete and valid. It contains no
// secrets, only references to them.
package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/slipway-sh/slipway/config/document"
)

// Config is a configuration. Load returns it; its zero value is not valid.
//
// The tags of a field define its JSON schema. The value of a field with
// interpolate:"true" may refer to environment variables.
type Config struct {
	APIVersion    string        `json:"apiVersion" jsonschema:"required,enum=slipway.sh/v1,example=slipway.sh/v1" jsonschema_description:"Version of this file's schema; slipway config migrate updates older files."`
	Provider      string        `json:"provider" jsonschema:"example=local" jsonschema_description:"Where the platform is installed. The section of the same name has the provider's settings."`
	Global        Global        `json:"global" jsonschema_description:"Name, domain and size of the deployment."`
	Platform      Platform      `json:"platform" jsonschema_description:"What is installed."`
	TLS           TLS           `json:"tls" jsonschema_description:"Where the platform's certificate comes from."`
	Proxy         Proxy         `json:"proxy" jsonschema_description:"Outgoing proxies of the platform."`
	SMTP          SMTP          `json:"smtp,omitzero" jsonschema_description:"Mail server for the platform's apps; they send no mail when left out."`
	Observability Observability `json:"observability,omitzero" jsonschema_description:"Where the platform sends its metrics; nowhere when left out."`
	Git           Git           `json:"git,omitzero" jsonschema_description:"Your own repository for the platform's apps, instead of the platform's Git server."`
	State         State         `json:"state,omitzero" jsonschema_description:"Where the deployment's state is stored."`
	Hooks         []Hook        `json:"hooks,omitempty" jsonschema_description:"Your commands before and after steps and workflows."`
	Advanced      Advanced      `json:"advanced" jsonschema_description:"Settings that rarely need a change."`

	sections map[string]json.RawMessage

	doc      *document.Document // the file
	file     string             // its name
	flags    map[string]string  // flags that override the file, by path
	expanded []string           // fields that contain values of environment variables
}

// Global describes the deployment.
type Global struct {
	Name   string `json:"name" jsonschema:"pattern=^[a-z]([a-z0-9-]{0\\,13}[a-z0-9])?$,example=staging" want:"1 to 15 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen" jsonschema_description:"Name of the deployment: 1 to 15 lower-case letters, digits and hyphens, starting with a letter."`
	Domain string `json:"domain" interpolate:"true" jsonschema:"example=platform.example.com" jsonschema_description:"Parent domain: the platform's hosts are <app>.<domain>."`
	Admin  Admin  `json:"admin" jsonschema_description:"The platform's administrator."`
	Scale  int    `json:"scale" jsonschema:"enum=50,enum=100,enum=500,enum=1000,example=100" jsonschema_description:"Scale profile: how many things, such as hosts or sites, the platform can carry. It selects infrastructure sizes and the platform's resources."`
}

// Admin is the platform's administrator.
type Admin struct {
	Email string `json:"email" interpolate:"true" jsonschema:"example=ops@example.com" jsonschema_description:"Mail address of the administrator; admin@<domain> when left out."`
}

// The modes of TLS.
const (
	SelfSigned      = "self-signed" // by a CA made for the deployment
	UserCertificate = "given"       // by the user
)

// TLS is where the platform's certificate comes from.
type TLS struct {
	Mode        string    `json:"mode" jsonschema:"enum=self-signed,enum=given,example=given" jsonschema_description:"self-signed: from the deployment's own CA. given: your certificate and key."`
	Certificate string    `json:"certificate,omitempty" jsonschema:"example=-----BEGIN CERTIFICATE-----\\nMIIB…\\n-----END CERTIFICATE-----\\n" jsonschema_description:"The given certificate and its intermediates, PEM."`
	CA          string    `json:"ca,omitempty" jsonschema:"example=-----BEGIN CERTIFICATE-----\\nMIIB…\\n-----END CERTIFICATE-----\\n" jsonschema_description:"CA certificates that clients must trust, PEM: for a given certificate from a private CA, or for an ACME server's certificate, besides the deployment's CA."`
	Key         SecretRef `json:"key,omitempty" jsonschema:"example=file:~/tls.key" jsonschema_description:"Reference to the given certificate's private key."`
}

// Proxy holds the outgoing proxies, as the variables of the same names do.
type Proxy struct {
	HTTP    string `json:"http,omitempty" interpolate:"true" jsonschema:"example=http://proxy.example.com:3128" jsonschema_description:"Proxy for http URLs, without user and password."`
	HTTPS   string `json:"https,omitempty" interpolate:"true" jsonschema:"example=http://proxy.example.com:3128" jsonschema_description:"Proxy for https URLs, without user and password."`
	NoProxy string `json:"noProxy,omitempty" interpolate:"true" jsonschema:"example=.example.com\\,10.0.0.0/8" jsonschema_description:"Hosts, domains and networks to reach directly, separated by commas."`
}

// Platform selects a platform release and its components.
type Platform struct {
	Release    string               `json:"release" interpolate:"true" jsonschema:"example=./my-platform" jsonschema_description:"Version of the reference platform, path of a release (with a slash in it), or a release in a Git repository: https://HOST/REPOSITORY[//FOLDER]@VERSION[#sha256:DIGEST]."`
	Components map[string]Component `json:"components,omitempty" jsonschema_description:"Components to switch on, switch off or configure, by name."`
	Secrets    map[string]SecretRef `json:"secrets,omitempty" example:"{\"adminPassword\": \"env:ADMIN_PASSWORD\"}" jsonschema_description:"Your secrets instead of generated ones, by the release's names for them, each with a reference."`
	Settings   json.RawMessage      `json:"settings,omitempty" example:"{\"theme\": \"dark\"}" jsonschema_description:"The platform release's own settings."`
}

// Component configures a component of the platform.
type Component struct {
	Enabled *bool           `json:"enabled,omitempty" example:"false" jsonschema_description:"Whether the component is installed; the release's default when left out."`
	Values  json.RawMessage `json:"values,omitempty" example:"{\"replicas\": 2}" jsonschema_description:"Values of the component's chart that replace the platform's."`
}

// What happens with images that a release runs and a run does not have.
const (
	RefuseMissing = "refuse" // nothing is started
	PullMissing   = "pull"   // the cluster may pull them
)

// Advanced contains settings that rarely need to be changed.
type Advanced struct {
	Timeouts Timeouts `json:"timeouts" jsonschema_description:"Time limits."`
	// MissingImages is what happens with images of the release that neither the bundle nor
	// the registry has: RefuseMissing or PullMissing.
	MissingImages string `json:"missingImages" jsonschema:"enum=refuse,enum=pull,example=pull" jsonschema_description:"What happens if neither the bundle nor the registry has an image of the release. refuse: Slipway starts nothing. pull: Slipway lists the images, and the cluster pulls them from their own registries."`
	Save          Save   `json:"save,omitzero" jsonschema_description:"How the packages of runs are made."`
	Registry      string `json:"registry,omitempty" interpolate:"true" jsonschema:"example=registry.example.com/slipway" jsonschema_description:"Registry, host[:port][/path], for images by digest if no bundle is given."`
}

// Timeouts are deadlines.
type Timeouts struct {
	App  Duration `json:"app" jsonschema:"example=10m" jsonschema_description:"Time limit for an app to become Synced and Healthy, 1s to 24h."`
	Step Duration `json:"step" jsonschema:"example=1h" jsonschema_description:"Time limit for a step, 1s to 24h."`
}

// Save says how packages of runs are made.
type Save struct {
	Key SecretRef `json:"key,omitempty" jsonschema:"example=env:SIGNING_KEY" jsonschema_description:"Reference to the private key that signs packages (PEM, ECDSA P-256 or Ed25519); no signature when left out."`
}

// Choices returns the components that the user switched on (true) or off (false).
func (c *Config) Choices() map[string]bool {
	out := make(map[string]bool, len(c.Platform.Components))
	for name, choice := range c.Platform.Components {
		if choice.Enabled != nil {
			out[name] = *choice.Enabled
		}
	}
	return out
}

// Overrides returns the user's values for the charts of components.
func (c *Config) Overrides() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, component := range c.Platform.Components {
		if component.Values != nil {
			out[name] = component.Values
		}
	}
	return out
}

// ReleaseIsPath reports whether the platform release is a path and not a version of the
// reference platform.
func (c *Config) ReleaseIsPath() bool {
	return strings.Contains(c.Platform.Release, "/") && !strings.Contains(c.Platform.Release, "://")
}

// Section returns the section of a provider, a JSON object that the provider decodes
// itself (see Decode); {} if there is none.
func (c *Config) Section(provider string) json.RawMessage {
	if raw, ok := c.sections[provider]; ok {
		return slices.Clone(raw)
	}
	return json.RawMessage("{}")
}

// Canonical returns the config as JSON with every default written out, keys in fixed
// order and no insignificant space: equal configs have equal bytes. Load reads
// it back to the same config.
func (c *Config) Canonical() []byte {
	type plain Config // has no MarshalJSON
	var out bytes.Buffer
	write := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil { // every type of Config can be marshalled, and sections are JSON
			panic(fmt.Sprintf("config: encode: %v", err))
		}
		return b
	}
	out.Write(bytes.TrimSuffix(write((*plain)(c)), []byte("}")))
	for _, name := range slices.Sorted(maps.Keys(c.sections)) {
		fmt.Fprintf(&out, ",%s:%s", write(name), write(c.sections[name]))
	}
	out.WriteByte('}')
	return escape(out.Bytes())
}

// MarshalJSON returns Canonical. There is no UnmarshalJSON: Load reads configs.
func (c *Config) MarshalJSON() ([]byte, error) { return c.Canonical(), nil }

// Digest returns the sha256 of the canonical encoding, "sha256:<hex>".
func (c *Config) Digest() string {
	sum := sha256.Sum256(c.Canonical())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// escape replaces characters that JSON permits but YAML does not with \u escapes. They
// only occur in JSON strings.
func escape(b []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(b) {
		switch {
		case r < ' ' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// Duration is a time.Duration that is written as "1m30s".
type Duration time.Duration

// String returns d as time.Duration writes it, without zeros at its end: "5m", not
// "5m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	for _, zero := range []string{"0s", "0m"} {
		if rest, ok := strings.CutSuffix(s, zero); ok && rest != "" && !unicode.IsDigit(rune(rest[len(rest)-1])) {
			s = rest
		}
	}
	return s
}

// MarshalText writes d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf(`a duration such as "90s", "5m" or "1h30m"`)
	}
	*d = Duration(v)
	return nil
}

// GoBack makes c what it was when was was written, except for the deployment's name, where
// its cluster and its state are and how they are reached, how long things may take, and where
// packages go.
//
// Secrets come from where c says, and of the hooks those stay that c has, too: was may be from
// a place to which others write, and neither may their commands run nor their scripts see
// secrets. dropped are the hooks that do not stay, and missing the references of was for which
// c has none, by setting.
func (c *Config) GoBack(was *Config) (dropped []string, missing map[string]SecretRef) {
	name, mine, hooks, secrets := c.Global.Name, c.Advanced, c.Hooks, c.References(nil)
	c.Global, c.Platform, c.TLS, c.Proxy, c.SMTP = was.Global, was.Platform, was.TLS, was.Proxy, was.SMTP
	c.Observability, c.Git, c.Hooks, c.Advanced = was.Observability, was.Git, nil, was.Advanced
	c.Global.Name, c.Advanced.Timeouts, c.Advanced.Save = name, mine.Timeouts, mine.Save
	for _, h := range was.Hooks {
		if slices.ContainsFunc(hooks, func(own Hook) bool { return reflect.DeepEqual(own, h) }) {
			c.Hooks = append(c.Hooks, h)
		} else {
			dropped = append(dropped, h.Name)
		}
	}
	missing = map[string]SecretRef{}
	eachReference("", reflect.ValueOf(c), func(setting string, ref SecretRef) SecretRef {
		is := secrets[setting]
		switch {
		case ref == "":
			return ""
		case is == "":
			missing[setting] = ref
		}
		return is
	})
	return dropped, missing
}
