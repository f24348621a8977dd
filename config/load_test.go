package config_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/stretchr/testify/require"
)

const full = `version: 1
name: blue-2
provider: local
domain: blue.example.com
adminEmail: ops@example.com
scale: medium
proxy:
  http: http://proxy.example.com:3128
  https: http://proxy.example.com:3128
  noProxy: .example.com,10.0.0.0/8
platform:
  release: ./platforms/mine
  components:
    guestbook: {enabled: false}
    extras: {enabled: true}
timeouts:
  app: 90s
  step: 1h30m
registry: registry.example.com:5000/slipway/images
local:
  memory: 4Gi
  ports: [80, 443]
  nested: {deep: {er: 1.50}}
aws: {region: eu-central-1}
`

func TestLoad_full(t *testing.T) {
	c, err := config.Load([]byte(full), config.Options{Providers: []string{"local"}})
	require.NoError(t, err)
	require.Equal(t, "blue-2", c.Name)
	require.Equal(t, "ops@example.com", c.AdminEmail)
	require.Equal(t, 2, c.Profile().Replicas)
	require.Equal(t, map[string]bool{"guestbook": false, "extras": true}, c.Choices())
	require.True(t, c.ReleaseIsPath())
	require.Equal(t, 90*time.Second, time.Duration(c.Timeouts.App))
	require.Equal(t, 90*time.Minute, time.Duration(c.Timeouts.Step))
	require.JSONEq(t, `{"memory":"4Gi","ports":[80,443],"nested":{"deep":{"er":1.5}}}`, string(c.Section("local")))
	require.JSONEq(t, `{"region":"eu-central-1"}`, string(c.Section("aws")))
	require.JSONEq(t, `{}`, string(c.Section("azure")))
}

func TestLoad_emptyMeansDefaults(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# nothing\n", "---\n", "null\n", "{}", "version: 1", "name:\nproxy:\n"} {
		c, err := config.Load([]byte(text), config.Options{})
		require.NoError(t, err, "%q", text)
		want := config.Default()
		want.AdminEmail = "admin@slipway.test"
		require.Equal(t, string(want.Canonical()), string(c.Canonical()), "%q", text)
		require.False(t, c.ReleaseIsPath())
	}
}

func TestLoad_allProblemsAtOnce(t *testing.T) {
	const text = `name: Much-Too-Long-Name
provder: local
domain: nodots
scale: 75
proxy:
  http: http://me:hunter2@proxy:3128
  nopoxy: x
tls:
  mode: given
  key: |
    -----BEGIN PRIVATE KEY-----
    c2VjcmV0
  certificate: |
    -----BEGIN PRIVATE KEY-----
    c2VjcmV0
    -----END PRIVATE KEY-----
platform:
  components:
    web: {enabled: perhaps}
    gitea: {}
timeouts: {app: soon, step: 10ms}
registry: https://registry.example.com
local: [1, 2]
`
	_, err := config.Load([]byte(text), config.Options{File: "slipway.yaml", Providers: []string{"local", "moon"}})
	require.Error(t, err)
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-001"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	want := []string{
		`line 1: name: got "Much-Too-Long-Name", want 1 to 15 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen`,
		`line 2: provder: got an unknown field, want "provider"`,
		`line 3: domain: got "nodots", want a domain in lower case such as platform.example.com`,
		`line 4: scale: got a number, want text (put it in quotes)`,
		`line 6: proxy.http: got a URL with user or password, want a URL such as http://proxy.example.com:3128, without them`,
		`line 7: proxy.nopoxy: got an unknown field, want "noProxy"`,
		`line 10: tls.key: got something else, want where the private key is: env:NAME or file:PATH; the key itself does not belong in this file`,
		`line 13: tls.certificate: got a private key, want PEM certificates (-----BEGIN CERTIFICATE-----), the server's first`,
		`line 19: platform.components.web.enabled: got text, want true or false`,
		`line 20: platform.components.gitea.enabled: got nothing, want true or false`,
		`line 21: timeouts.app: got "soon", want a duration such as "90s", "5m" or "1h30m"`,
		`line 21: timeouts.step: got 10ms, want a duration from 1s to 24h`,
		`line 22: registry: got "https://registry.example.com", want host[:port][/path] such as registry.example.com/slipway, without scheme and tag`,
		`line 23: local: got a list, want a mapping`,
	}
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	require.Equal(t, want, got)
	for _, line := range want {
		require.Contains(t, err.Error(), "\n  "+line)
	}
	require.True(t, strings.HasPrefix(err.Error(), "read slipway.yaml: 14 problems:\n"), err.Error())
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "c2VjcmV0")
}

func TestLoad_oneProblem(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"name ends with hyphen":  {"name: a-", `line 1: name: got "a-", want`},
		"name of 16":             {"name: abcdefghijklmnop", `name: got "abcdefghijklmnop"`},
		"known, not registered":  {"provider: aws", `provider: got "aws", want local or onprem (this program has no provider aws)`},
		"unknown provider":       {"provider: mars", `provider: got "mars", want local or onprem`},
		"mail":                   {"adminEmail: Ops <ops@example.com>", `adminEmail: got "Ops <ops@example.com>"`},
		"unknown scale":          {"scale: huge", `scale: got "huge", want small, medium or large`},
		"version 0":              {"version: 0", `line 1: version: got 0, want 1`},
		"version as text":        {`version: "1"`, `line 1: version: got text, want a whole number`},
		"tls value, self-signed": {"tls:\n  key: env:KEY", "line 2: tls.key: got a value, want none with mode self-signed"},
		"tls mode":               {"tls: {mode: acme}", `tls.mode: got "acme", want self-signed or given`},
		"release":                {"platform: {release: latest}", `platform.release: got "latest", want a version`},
		"component name":         {"platform: {components: {Web: {enabled: true}}}", `platform.components.Web: got "Web"`},
		"duplicate key":          {"name: a\nscale: small\nname: b", "line 3: name: got the field again (first on line 1), want it once"},
		"a list":                 {"- a\n- b", "line 1: got a list, want a mapping of fields (name: value)"},
		"text":                   {"hello", "line 1: got text, want a mapping of fields"},
		"two documents":          {"name: a\n---\nname: b", "got another document, want one document in the file"},
		"tab":                    {"proxy:\n\thttp: x", "line 2: got a tab in the indentation, want spaces"},
		"syntax":                 {"name: a\nb", "got a syntax error"},
		"binary":                 {"name: \x00\x01", "line 1: got the byte 0x00, want YAML text in UTF-8"},
		"not UTF-8":              {"name: a\nscale: \xff", "line 2: got the byte 0xff, want YAML text in UTF-8"},
		"large":                  {strings.Repeat("# x\n", 300_000), "got 1200000 bytes, want at most 1 MiB"},
		"anchor":                 {"proxy: &p {http: http://a}", "got an anchor or alias, want the value itself"},
		"merge":                  {"aws:\n  <<: {a: 1}", "line 2: aws: got a key that is a merge key, want text as key"},
		"number as key":          {"1: a", "got a key that is a number, want text as key"},
		"tag":                    {"name: !secret a", `line 1: name: got the tag "!secret", want a plain value`},
		"deep":                   {"aws: {a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", "got deeper nesting, want at most 32 levels"},
		"control in a key":       {`"a\nb": 1`, `line 1: "a\nb": got an unknown field`},
		"not a number":           {"aws: {a: .nan}", "line 1: aws.a: got a number that is not finite"},
		"near a section":         {"lokal: {}", `lokal: got an unknown field, want "local"`},
		"far from all":           {"zzzzzz: {}", "want one of adminEmail, aws, azure, domain, hooks, local, name, onprem, platform, provider"},
		"proxy kind":             {"proxy: {https: socks5://a:1}", "proxy.https: got another kind of URL"},
		"noProxy":                {"proxy: {noProxy: 'a, b'}", `proxy.noProxy: got "a, b", want hosts separated by commas, without spaces`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load([]byte(c.text), config.Options{Providers: []string{"local", "onprem"}})
			require.ErrorContains(t, err, c.want)
			require.Len(t, config.Problems(err), 1, "%v", err)
			require.ErrorIs(t, err, &fault.Fault{Code: config.CodeInvalid})
		})
	}
}

func TestLoad_newer(t *testing.T) {
	_, err := config.Load([]byte("version: 7\nunheardOf: true"), config.Options{File: "new.yaml"})
	require.EqualError(t, err, "read new.yaml: the file has version 7, this program knows versions up to 1")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-002"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
}

func TestLoad_section(t *testing.T) {
	type local struct {
		Memory string `json:"memory"`
		CPUs   int    `json:"cpus"`
	}
	check := func(provider string, raw json.RawMessage) []config.Problem {
		require.Equal(t, "local", provider)
		var l local
		problems := config.Decode(raw, &l)
		if l.Memory == "" {
			problems = append(problems, config.Problem{Field: "memory", Got: "nothing", Want: "an amount"})
		}
		return problems
	}
	_, err := config.Load([]byte("name: x\nlocal:\n  cpus: many\n  memry: 4Gi\nscale: none"), config.Options{Section: check})
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	require.Equal(t, []string{
		"line 2: local.memory: got nothing, want an amount",
		"line 3: local.cpus: got text, want a whole number",
		`line 4: local.memry: got an unknown field, want "memory"`,
		`line 5: scale: got "none", want small, medium or large`,
	}, got)
	_, err = config.Load([]byte("local: {memory: 4Gi}"), config.Options{Section: check})
	require.NoError(t, err)
}

func TestLoad_givenTLS(t *testing.T) {
	cert := certificate(t)
	text := func(key string) []byte {
		return fmt.Appendf(nil, "tls:\n  mode: given\n  key: %s\n  certificate: %q\n  ca: %q\n", key, cert, cert)
	}
	for key, uri := range map[string]string{"env:TLS_KEY": "env://TLS_KEY", "file:/run/keys/tls.pem": "file:///run/keys/tls.pem"} {
		c, err := config.Load(text(key), config.Options{})
		require.NoError(t, err)
		require.Equal(t, uri, c.TLS.Key.URI())
	}
	for _, key := range []string{"vault:x", "env:1A", "'file:'", "just-text", "'env:A B'"} {
		_, err := config.Load(text(key), config.Options{})
		require.ErrorContains(t, err, "line 3: tls.key: got something else")
	}
	_, err := config.Load([]byte("tls: {mode: given}"), config.Options{})
	require.ErrorContains(t, err, "tls.certificate: got nothing")
	require.ErrorContains(t, err, "tls.key: got nothing")
}

func TestCanonical(t *testing.T) {
	a, err := config.Load([]byte("scale: small\nlocal: {b: 1, a: [x]}\nname: one"), config.Options{})
	require.NoError(t, err)
	b, err := config.Load([]byte("version: 1 # same\nname: one\nlocal:\n  a:\n  - x\n  b: 1\n"), config.Options{})
	require.NoError(t, err)
	require.Equal(t, string(a.Canonical()), string(b.Canonical()))
	require.Equal(t, a.Digest(), b.Digest())
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, a.Digest())
	c, err := config.Load([]byte("name: one\nlocal: {b: 2, a: [x]}"), config.Options{})
	require.NoError(t, err)
	require.NotEqual(t, a.Digest(), c.Digest())
	js, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, string(a.Canonical()), string(js))
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("local: {a: -0.0, b: 1e21, c: 0x10, d: 2020-01-01, e: \"\\x7f\\U0001F600\\ud83d\", ~: x}"))
	f.Add([]byte("tls: {mode: given, key: 'file:/a b'}"))
	f.Add([]byte("hooks: [{name: a, before: '*', run: [a, ''], env: {A: \"\\0\"}, secrets: {B: 'env:C'}}, {name: b, after: x/y, script: |\n a}]"))
	f.Add([]byte("a: &x [*x]\n? [1]: 2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Load(data, config.Options{})
		if err != nil {
			require.True(t, bytes.HasPrefix([]byte(err.Error()), []byte("read the configuration: ")))
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			return
		}
		again, err := config.Load(c.Canonical(), config.Options{})
		require.NoError(t, err, "%s", c.Canonical())
		require.Equal(t, string(c.Canonical()), string(again.Canonical()))
	})
}

// certificate is a self-signed certificate in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
