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
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
	"github.com/stretchr/testify/require"
)

const full = `apiVersion: slipway.sh/v1
provider: local
global:
  name: blue-2
  domain: blue.example.com
  admin: {email: ops@example.com}
  scale: 100
proxy:
  http: http://proxy.example.com:3128
  https: http://proxy.example.com:3128
  noProxy: .example.com,10.0.0.0/8
smtp:
  host: mail.example.com
  from: blue@example.com
  username: blue
  password: env:SMTP_PASSWORD
observability:
  endpoint: https://metrics.example.com/api/v1/write
platform:
  release: ./platforms/mine
  components:
    guestbook: {enabled: false}
    extras: {enabled: true, values: {a: {b: 1}}}
  settings: {colour: blue}
advanced:
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

// v1 turns text into a file of the current version without changing line numbers.
func v1(text string) []byte { return []byte(text + "\napiVersion: slipway.sh/v1\n") }

func TestLoad_full(t *testing.T) {
	c, err := config.Load([]byte(full), config.Options{DefaultProvider: "local", Providers: []string{"local", "aws"}})
	require.NoError(t, err)
	require.Equal(t, "blue-2", c.Global.Name)
	require.Equal(t, "ops@example.com", c.Global.Admin.Email)
	require.Equal(t, config.SMTP{Host: "mail.example.com", Port: 587, From: "blue@example.com", TLS: "starttls", Username: "blue", Password: "env:SMTP_PASSWORD"}, c.SMTP)
	require.Equal(t, "https://metrics.example.com/api/v1/write", c.Observability.Endpoint)
	require.JSONEq(t, `{"a":{"b":1}}`, string(c.Platform.Components["extras"].Values))
	require.JSONEq(t, `{"colour":"blue"}`, string(c.Platform.Settings))
	require.Equal(t, 8, c.Profile().MemoryGiB)
	require.Equal(t, map[string]bool{"guestbook": false, "extras": true}, c.Choices())
	require.True(t, c.ReleaseIsPath())
	require.Equal(t, 90*time.Second, time.Duration(c.Advanced.Timeouts.App))
	require.Equal(t, 90*time.Minute, time.Duration(c.Advanced.Timeouts.Step))
	require.JSONEq(t, `{"memory":"4Gi","ports":[80,443],"nested":{"deep":{"er":1.5}}}`, string(c.Section("local")))
	require.JSONEq(t, `{"region":"eu-central-1"}`, string(c.Section("aws")))
	require.JSONEq(t, `{}`, string(c.Section("azure")))
}

func TestLoad_emptyMeansDefaults(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# nothing\n", "---\n", "null\n", "{}", "apiVersion: slipway.sh/v1", "apiVersion: slipway.sh/v1\nglobal:\nproxy:\n"} {
		c, err := config.Load([]byte(text), config.Options{DefaultProvider: "local"})
		require.NoError(t, err, "%q", text)
		want := config.Default()
		want.Global.Admin.Email = "admin@slipway.test"
		want.Provider = "local"
		require.Equal(t, string(want.Canonical()), string(c.Canonical()), "%q", text)
		require.False(t, c.ReleaseIsPath())
	}
}

func TestLoad_allProblemsAtOnce(t *testing.T) {
	const text = `global: {name: Much-Too-Long-Name,
  domain: nodots,
  scale: 75}
provder: local
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
advanced:
  timeouts: {app: soon, step: 10ms}
  registry: https://registry.example.com
local: [1, 2]
smtp: {host: "https://mail", port: 99999, from: nobody, tls: maybe, username: me, password: hunter2}
observability: {endpoint: "https://me:hunter2@metrics", ca: x, password: "env:X"}
state: {key: "vault:x"}
`
	_, err := config.Load(v1(text), config.Options{DefaultProvider: "local", File: "slipway.yaml", Providers: []string{"local", "moon"}})
	require.Error(t, err)
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-001"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	const refs = "env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD"
	want := []string{
		`line 1: global.name: got "Much-Too-Long-Name", want 1 to 15 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen`,
		`line 2: global.domain: got "nodots", want a domain in lower case such as platform.example.com`,
		`line 3: global.scale: got 75, want 50, 100, 500 or 1000`,
		`line 4: provder: got an unknown field, want "provider"`,
		`line 6: proxy.http: got a URL with user or password, want a URL such as http://proxy.example.com:3128, without them`,
		`line 7: proxy.nopoxy: got an unknown field, want "noProxy"`,
		`line 10: tls.key: got something else, want where the private key is: ` + refs + `; the private key itself does not belong in this file`,
		`line 13: tls.certificate: got a private key, want PEM certificates (-----BEGIN CERTIFICATE-----), the server's first`,
		`line 19: platform.components.web.enabled: got text, want true or false`,
		`line 20: platform.components.gitea.enabled: got nothing, want true or false, or values of its chart`,
		`line 22: advanced.timeouts.app: got "soon", want a duration such as "90s", "5m" or "1h30m"`,
		`line 22: advanced.timeouts.step: got 10ms, want a duration from 1s to 24h`,
		`line 23: advanced.registry: got "https://registry.example.com", want host[:port][/path] such as registry.example.com/slipway, without scheme and tag`,
		`line 24: local: got a list, want a mapping`,
		`line 25: smtp.from: got "nobody", want a mail address such as platform@example.com`,
		`line 25: smtp.host: got "https://mail", want a host such as mail.example.com, without scheme and port`,
		`line 25: smtp.password: got something else, want where the password is: ` + refs + `; the password itself does not belong in this file`,
		`line 25: smtp.port: got 99999, want a TCP port, 1 to 65535`,
		`line 25: smtp.tls: got "maybe", want starttls, implicit or none`,
		`line 26: observability.ca: got text that is not PEM, want PEM certificates (-----BEGIN CERTIFICATE-----)`,
		`line 26: observability.endpoint: got a URL with user or password, want a URL such as https://metrics.example.com/api/v1/write; they go into username and password`,
		`line 26: observability.password: got a value, want none without observability.username`,
		`line 27: state.key: got a value, want none without state.url`,
	}
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	require.Equal(t, want, got)
	for _, line := range want {
		require.Contains(t, err.Error(), "\n  "+line)
	}
	require.True(t, strings.HasPrefix(err.Error(), "read slipway.yaml: 23 problems:\n"), err.Error())
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "c2VjcmV0")
}

func TestLoad_oneProblem(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"name ends with hyphen":  {"global: {name: a-}", `line 1: global.name: got "a-", want`},
		"name of 16":             {"global: {name: abcdefghijklmnop}", `global.name: got "abcdefghijklmnop"`},
		"unknown provider":       {"provider: mars", `provider: got "mars", want aws, azure, local or onprem`},
		"mail":                   {"global: {admin: {email: Ops <ops@example.com>}}", `global.admin.email: got "Ops <ops@example.com>"`},
		"unknown scale":          {"global: {scale: 51}", `global.scale: got 51, want 50, 100, 500 or 1000`},
		"scale as text":          {"global: {scale: huge}", `global.scale: got text, want 50, 100, 500 or 1000`},
		"old field":              {"name: a", `line 1: name: got an unknown field, want "name" in the mapping global`},
		"tls value, self-signed": {"tls:\n  key: env:KEY", "line 2: tls.key: got a value, want none with mode self-signed"},
		"tls trust, self-signed": {"tls:\n  ca: none", `line 2: tls.ca: got text that is not PEM, want PEM certificates`},
		"tls mode":               {"tls: {mode: acme}", `tls.mode: got "acme", want self-signed or given`},
		"release":                {"platform: {release: latest}", `platform.release: got "latest", want a version`},
		"component name":         {"platform: {components: {Web: {enabled: true}}}", `platform.components.Web: got "Web"`},
		"component's values":     {"platform: {components: {web: {values: [1]}}}", `platform.components.web.values: got a list, want a mapping`},
		"settings":               {"platform: {settings: 1}", `platform.settings: got a number, want a mapping`},
		"duplicate key":          {"tls: {}\nproxy: {}\ntls: {}", "line 3: tls: got the field again (first on line 1), want it once"},
		"tab":                    {"proxy:\n\thttp: x", "line 2: got a tab in the indentation, want spaces"},
		"syntax":                 {"name: a\nb", "got a syntax error"},
		"binary":                 {"name: \x00\x01", "line 1: got the byte 0x00, want YAML text in UTF-8"},
		"not UTF-8":              {"name: a\nscale: \xff", "line 2: got the byte 0xff, want YAML text in UTF-8"},
		"large":                  {strings.Repeat("# x\n", 300_000), "bytes, want at most 1 MiB"},
		"anchor":                 {"proxy: &p {http: http://a}", "got an anchor or alias, want the value itself"},
		"merge":                  {"aws:\n  <<: {a: 1}", "line 2: aws: got a key that is a merge key, want the fields themselves"},
		"number as key":          {"1: a", "got a key that is a number, want text as key"},
		"tag":                    {"provider: !secret a", `line 1: provider: got a tag (!…), want a plain value`},
		"deep":                   {"aws: {a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", "got deeper nesting, want at most 32 levels"},
		"control in a key":       {`"a\nb": 1`, `line 1: "a\nb": got an unknown field`},
		"not a number":           {"aws: {a: .nan}", "line 1: aws: got a value that JSON cannot hold"},
		"near a section":         {"lokal: {}", `lokal: got an unknown field, want "local"`},
		"far from all":           {"zzzzzz: {}", "want one of advanced, apiVersion, aws, azure, git, global, hooks, local, observability, onprem, platform, provider"},
		"proxy kind":             {"proxy: {https: socks5://a:1}", "proxy.https: got another kind of URL"},
		"noProxy":                {"proxy: {noProxy: 'a, b'}", `proxy.noProxy: got "a, b", want hosts separated by commas, without spaces`},
		"smtp without a host":    {"smtp: {from: a@b.example}", "smtp.from: got a value, want none without smtp.host"},
		"smtp without password":  {"smtp: {host: localhost, from: a@b.example, username: a}", "smtp.password: got nothing, want where the password is"},
		"metrics without an URL": {"observability: {username: a}", "observability.username: got a value, want none without observability.endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(v1(c.text), config.Options{DefaultProvider: "local", Providers: []string{"aws", "azure", "local", "onprem"}})
			require.ErrorContains(t, err, c.want)
			require.Len(t, config.Problems(err), 1, "%v", err)
			require.ErrorIs(t, err, &fault.Fault{Code: config.CodeInvalid})
		})
	}
}

func TestLoad_noConfig(t *testing.T) {
	for text, want := range map[string]string{
		"- a\n- b":                 "line 1: got a list, want a mapping of fields (name: value)",
		"hello":                    "line 1: got text, want a mapping of fields",
		"tls: {}\n---\nproxy: {}":  "got another document, want one document in the file",
		"tls: {}":                  "line 1: apiVersion: got nothing, want slipway.sh/v1",
		"version: two":             "line 1: apiVersion: got nothing, want slipway.sh/v1",
		"apiVersion: [slipway/v1]": `apiVersion`,
	} {
		_, err := config.Load([]byte(text), config.Options{DefaultProvider: "local"})
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Usage, fault.ClassOf(err))
	}
}

func TestLoad_environment(t *testing.T) {
	env := map[string]string{"CI_DOMAIN": "ci.example.com", "EMPTY": "", "PROXY": "proxy.example.com"}
	lookup := func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	text := v1(`global: {domain: "${CI_DOMAIN}", admin: {email: "ops@${NONE:-example.com}"}}
proxy: {http: "http://${PROXY}:3128", https: "http://${EMPTY:-other}:1"}
hooks: [{name: a, before: workflow, script: 'echo ${PROXY} $$'}]
`)
	c, err := config.Load(text, config.Options{DefaultProvider: "local", Env: lookup})
	require.NoError(t, err)
	require.Equal(t, "ci.example.com", c.Global.Domain)
	require.Equal(t, "ops@example.com", c.Global.Admin.Email)
	require.Equal(t, config.Proxy{HTTP: "http://proxy.example.com:3128", HTTPS: "http://other:1"}, c.Proxy)
	require.Equal(t, "echo ${PROXY} $$", c.Hooks[0].Script, "a script is the shell's")

	_, err = config.Load(v1("global:\n  domain: ${NONE}.${EMPTY}\nplatform: {release: './$$x/${NONE:-}'}"), config.Options{DefaultProvider: "local", Env: lookup})
	require.Len(t, config.Problems(err), 1)
	require.ErrorContains(t, err, "line 2: global.domain: got ${NONE}, ${EMPTY}, want the environment variables set, or defaults: ${NONE:-value}")
	c, err = config.Load(v1("platform: {release: './$$x/${NONE:-}'}"), config.Options{DefaultProvider: "local", Env: lookup})
	require.NoError(t, err)
	require.Equal(t, "./$x/", c.Platform.Release)
	again, err := config.Load(c.Canonical(), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, "./$x/", again.Platform.Release, "it is expanded only once")
}

func TestLoad_newer(t *testing.T) {
	_, err := config.Load([]byte("apiVersion: slipway.sh/v2\nunheardOf: true"), config.Options{DefaultProvider: "local", File: "new.yaml"})
	require.EqualError(t, err, `read new.yaml: the file has apiVersion "slipway.sh/v2", this program knows slipway.sh/v1alpha1 or slipway.sh/v1`)
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
	_, err := config.Load(v1("tls: {}\nlocal:\n  cpus: many\n  memry: 4Gi\nglobal: {scale: 7}"), config.Options{DefaultProvider: "local", Section: check})
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	require.Equal(t, []string{
		"line 3: local.cpus: got text, want a whole number",
		`line 4: local.memry: got an unknown field, want "memory"`,
		"line 5: global.scale: got 7, want 50, 100, 500 or 1000",
	}, got)
	_, err = config.Load(v1("local: {memory: 4Gi}"), config.Options{DefaultProvider: "local", Section: check})
	require.NoError(t, err)
}

func TestLoad_givenTLS(t *testing.T) {
	cert := certificate(t)
	text := func(key string) []byte {
		return v1(fmt.Sprintf("tls:\n  mode: given\n  key: %s\n  certificate: %q\n  ca: %q\n", key, cert, cert))
	}
	for key, uri := range map[string]string{
		"env:TLS_KEY": "env://TLS_KEY", "file:/run/keys/tls.pem": "file:///run/keys/tls.pem",
		"'cmd:pass show tls'": "cmd://pass show tls", "vault:infra/tls.key": "vault://infra/tls.key", "op:infra/tls/key": "op://infra/tls/key",
	} {
		c, err := config.Load(text(key), config.Options{DefaultProvider: "local"})
		require.NoError(t, err)
		require.Equal(t, uri, c.TLS.Key.URI())
	}
	for _, key := range []string{"vault:x", "op:x/y", "'cmd:'", "env:1A", "'file:'", "just-text", "'env:A B'"} {
		_, err := config.Load(text(key), config.Options{DefaultProvider: "local"})
		require.ErrorContains(t, err, "line 3: tls.key: got something else")
	}
	_, err := config.Load(v1("tls: {mode: given}"), config.Options{DefaultProvider: "local"})
	require.ErrorContains(t, err, "tls.certificate: got nothing")
	require.ErrorContains(t, err, "tls.key: got nothing")
}

// TestAFlagIsBlamedItself for what is wrong with its value, and not the file's line that it replaces.
func TestAFlagIsBlamedItself(t *testing.T) {
	opts := config.Options{DefaultProvider: "local", File: "mine.yaml", Name: strings.Repeat("n", 80)}
	_, err := config.Load(v1("global:\n  name: fine"), opts)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, config.CodeInvalid, f.Code)
	require.Contains(t, f.Error(), "read the command line: 1 problem:\n  --name: ")
	require.NotContains(t, f.Error()+f.Fix, "mine.yaml")
	require.NotContains(t, f.Error(), "line ")
	_, err = config.Load(v1("global:\n  name: fine\n  scale: -1"), opts)
	require.ErrorContains(t, err, "read mine.yaml: 2 problems:\n  --name: ")
	require.ErrorContains(t, err, "\n  line 3: global.scale: ")
}

func TestCanonical(t *testing.T) {
	a, err := config.Load(v1("global: {scale: 50, name: one}\nlocal: {b: 1, a: [x]}"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	b, err := config.Load(v1("global:\n  name: one # same\nlocal:\n  a:\n  - x\n  b: 1\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, string(a.Canonical()), string(b.Canonical()))
	require.Equal(t, a.Digest(), b.Digest())
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, a.Digest())
	c, err := config.Load(v1("global: {name: one}\nlocal: {b: 2, a: [x]}"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.NotEqual(t, a.Digest(), c.Digest())
	js, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, string(a.Canonical()), string(js))
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("version: 1\nname: a\nscale: small\nadminEmail: a@b.example\ntimeouts: {app: 1m}"))
	f.Add([]byte("apiVersion: slipway.sh/v1alpha1\nadminEmail: a@b.example\nregistry: a/b"))
	f.Add([]byte("apiVersion: slipway.sh/v1\nlocal: {a: -0.0, b: 1e21, c: 0x10, d: 2020-01-01, e: \"\\x7f\\U0001F600\\ud83d\", ~: x}"))
	f.Add(v1("tls: {mode: given, key: 'file:/a b'}"))
	f.Add(v1("hooks: [{name: a, before: '*', run: [a, ''], env: {A: \"\\0\"}, secrets: {B: 'env:C'}}, {name: b, after: x/y, script: |\n a}]"))
	f.Add([]byte("a: &x [*x]\n? [1]: 2"))
	for _, c := range faulttest.Cases(f, "../providers/all/testdata/broken") {
		f.Add(c.Text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Load(data, config.Options{DefaultProvider: "local"})
		if err != nil {
			require.True(t, bytes.HasPrefix([]byte(err.Error()), []byte("read the configuration: ")))
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			return
		}
		again, err := config.Load(c.Canonical(), config.Options{DefaultProvider: "local"})
		require.NoError(t, err, "%s", c.Canonical())
		require.Equal(t, string(c.Canonical()), string(again.Canonical()))

		current, changes, err := config.Migrate(data, "slipway.yaml")
		require.NoError(t, err)
		again, err = config.Load(current, config.Options{DefaultProvider: "local", Migrated: func([]config.Change) {
			require.Fail(t, "migrated again", "%s", current)
		}})
		require.NoError(t, err, "%s", current)
		require.Equal(t, string(c.Canonical()), string(again.Canonical()), "%s", current)
		same, more, err := config.Migrate(current, "slipway.yaml")
		require.NoError(t, err)
		require.Empty(t, more, "after %v", changes)
		require.Equal(t, string(current), string(same))
	})
}

// certificate returns a self-signed certificate in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestLoad_selfSignedWithMoreToTrust(t *testing.T) {
	cert := certificate(t)
	c, err := config.Load(v1(fmt.Sprintf("tls: {ca: %q}", cert)), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, config.TLS{Mode: config.SelfSigned, CA: cert}, c.TLS)
}
