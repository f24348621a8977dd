// Package config is the user's file: its types, defaults, JSON schema and
// validation. A loaded Config is complete and valid, and holds no secret: where
// one is needed the file names where it comes from.
package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Version is the version of the schema that this program writes and reads.
const Version = 1

// Config is what a user asks for. Load makes it; its zero value is not valid.
type Config struct {
	Version    int      `json:"version" jsonschema:"enum=1,default=1" jsonschema_description:"Version of this file's schema."`
	Name       string   `json:"name" jsonschema:"pattern=^[a-z]([a-z0-9-]{0\\,13}[a-z0-9])?$,default=slipway" jsonschema_description:"Name of the deployment: 1 to 15 lower-case letters, digits and hyphens, starting with a letter."`
	Provider   string   `json:"provider" jsonschema:"enum=local,enum=onprem,enum=aws,enum=azure,default=local" jsonschema_description:"Where the platform is installed. The section of the same name holds the provider's own settings."`
	Domain     string   `json:"domain" jsonschema:"default=slipway.test" jsonschema_description:"Parent domain: the platform's hosts are <app>.<domain>."`
	AdminEmail string   `json:"adminEmail" jsonschema:"format=email" jsonschema_description:"Mail address of the administrator; admin@<domain> when left out."`
	Scale      string   `json:"scale" jsonschema:"enum=small,enum=medium,enum=large,default=small" jsonschema_description:"Scale profile: how much the platform is made to carry."`
	TLS        TLS      `json:"tls" jsonschema_description:"Where the platform's certificate comes from."`
	Proxy      Proxy    `json:"proxy" jsonschema_description:"Outgoing proxies of the platform."`
	Platform   Platform `json:"platform" jsonschema_description:"What is installed."`
	Timeouts   Timeouts `json:"timeouts" jsonschema_description:"How long things may take."`
	State      State    `json:"state,omitzero" jsonschema_description:"Where the deployment's state is kept."`
	Hooks      []Hook   `json:"hooks,omitempty" jsonschema_description:"Commands of yours that run before and after steps and workflows."`
	Registry   string   `json:"registry,omitempty" jsonschema:"example=registry.example.com/slipway" jsonschema_description:"Registry, host[:port][/path], that images come from by digest when no bundle is given."`

	sections map[string]json.RawMessage
}

// The modes of TLS.
const (
	SelfSigned = "self-signed" // by a CA made for the deployment
	Given      = "given"       // by the user
)

// TLS is where the platform's certificate comes from.
type TLS struct {
	Mode        string    `json:"mode" jsonschema:"enum=self-signed,enum=given,default=self-signed" jsonschema_description:"self-signed: by a CA made for the deployment. given: certificate and key are yours."`
	Certificate string    `json:"certificate,omitempty" jsonschema_description:"The given certificate and its intermediates, PEM."`
	CA          string    `json:"ca,omitempty" jsonschema_description:"Certificates that clients must trust for the given one, PEM; none when a public CA issued it."`
	Key         SecretRef `json:"key,omitempty" jsonschema_description:"Where the given certificate's private key is: env:NAME or file:PATH. Never the key itself."`
}

// Proxy holds the outgoing proxies, as the variables of the same names do.
type Proxy struct {
	HTTP    string `json:"http,omitempty" jsonschema:"example=http://proxy.example.com:3128" jsonschema_description:"Proxy for http URLs, without user and password."`
	HTTPS   string `json:"https,omitempty" jsonschema:"example=http://proxy.example.com:3128" jsonschema_description:"Proxy for https URLs, without user and password."`
	NoProxy string `json:"noProxy,omitempty" jsonschema:"example=.example.com\\,10.0.0.0/8" jsonschema_description:"Hosts, domains and networks that are reached directly, separated by commas."`
}

// Platform chooses a platform release and what of it is installed.
type Platform struct {
	Release    string            `json:"release" jsonschema:"default=1.0.0" jsonschema_description:"Version of the reference platform, or path of a platform release (with a slash in it)."`
	Components map[string]Choice `json:"components,omitempty" jsonschema_description:"Components to switch on or off, by name."`
}

// Choice switches a component on or off.
type Choice struct {
	Enabled *bool `json:"enabled" jsonschema_description:"Whether the component is installed."`
}

// Timeouts are deadlines.
type Timeouts struct {
	App  Duration `json:"app" jsonschema:"default=5m" jsonschema_description:"How long an app may take to become Synced and Healthy."`
	Step Duration `json:"step" jsonschema:"default=20m" jsonschema_description:"How long a step may take."`
}

// Choices are the components that the user switched on (true) or off (false).
func (c *Config) Choices() map[string]bool {
	out := make(map[string]bool, len(c.Platform.Components))
	for name, choice := range c.Platform.Components {
		if choice.Enabled != nil {
			out[name] = *choice.Enabled
		}
	}
	return out
}

// ReleaseIsPath tells whether the platform release is a path instead of a
// version of the reference platform.
func (c *Config) ReleaseIsPath() bool { return strings.Contains(c.Platform.Release, "/") }

// Section is what the file says under a provider's name, a JSON object that the
// provider decodes itself (see Decode); {} when it says nothing.
func (c *Config) Section(provider string) json.RawMessage {
	if raw, ok := c.sections[provider]; ok {
		return slices.Clone(raw)
	}
	return json.RawMessage("{}")
}

// Canonical is the config as JSON with every default written out, keys in fixed
// order and no insignificant space: equal configs have equal bytes. Load reads
// it back to the same config.
func (c *Config) Canonical() []byte {
	type plain Config // without MarshalJSON
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

// MarshalJSON is Canonical. There is no UnmarshalJSON: Load reads configs.
func (c *Config) MarshalJSON() ([]byte, error) { return c.Canonical(), nil }

// Digest is the sha256 of the canonical encoding, "sha256:<hex>".
func (c *Config) Digest() string {
	sum := sha256.Sum256(c.Canonical())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// escape writes what YAML does not take literally, though JSON does, as \u
// escapes. Such characters occur in JSON strings only.
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

// String is d as time.Duration writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes d as time.Duration does.
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

// SecretRef tells where a secret is, and is not one itself: "env:NAME" or
// "file:PATH". The empty SecretRef names none.
type SecretRef string

// Split is the kind of place, "env" or "file", and the name or path there.
func (r SecretRef) Split() (kind, name string) {
	kind, name, _ = strings.Cut(string(r), ":")
	return kind, name
}

// URI is the reference as Dagger writes it: "env://NAME", "file://PATH"; empty
// for the empty reference.
func (r SecretRef) URI() string {
	if r == "" {
		return ""
	}
	kind, name := r.Split()
	return kind + "://" + name
}
