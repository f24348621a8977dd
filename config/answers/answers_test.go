package answers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	providers "github.com/slipway-sh/slipway/providers/all"
)

func schema(t *testing.T, settings string) *answers.Schema {
	t.Helper()
	var own []byte
	if settings != "" {
		own = []byte(settings)
	}
	return answers.NewSchema(config.Describe(providers.All().Sections()), own)
}

func draft(t *testing.T, s *answers.Schema, text string) *answers.Draft {
	t.Helper()
	d, err := answers.NewDraft(s, []byte(text))
	require.NoError(t, err)
	return d
}

// file returns what the draft makes, without the line for editors.
func file(t *testing.T, d *answers.Draft) string {
	t.Helper()
	text, err := d.Bytes()
	require.NoError(t, err)
	first, rest, _ := strings.Cut(string(text), "\n")
	require.Equal(t, "# yaml-language-server: $schema="+answers.SchemaURL, first)
	return rest
}

// check loads a file as a program does.
func check(text []byte) []config.Problem {
	all := providers.All()
	_, err := config.Load(text, all.Options())
	return config.Problems(err)
}

const settings = `{"type": "object", "required": ["theme"], "additionalProperties": false, "properties": {
	"theme": {"type": "string", "enum": ["dark", "light"], "description": "How it looks."},
	"rows": {"type": "integer", "default": 10, "description": "Rows of a page."}}}`

func TestFieldsAreThoseOfTheSchema(t *testing.T) {
	s := schema(t, settings)
	for path, want := range map[string]answers.Field{
		"global.scale":                        {Type: answers.Number, Options: []string{"50", "100", "500", "1000"}, Default: "50", Example: "100"},
		"aws.roles":                           {Type: answers.List, Example: "platform-admin"},
		"local.ports":                         {Type: answers.List, Example: "80,443"},
		"advanced.timeouts.app":               {Type: answers.Text, Default: "5m", Example: "10m"},
		"aws.region":                          {Type: answers.Text, Example: "eu-central-1", Required: true},
		"platform.components.toolbox.enabled": {Type: answers.Bool, Example: "false"},
		"platform.settings.rows":              {Type: answers.Number, Default: "10"},
		"platform.settings.theme":             {Type: answers.Text, Options: []string{"dark", "light"}, Required: true},
		"smtp.password":                       {Type: answers.Text, Example: "env:SMTP_PASSWORD"},
	} {
		f, wrong := s.Field(path)
		require.Nil(t, wrong, path)
		require.NotEmpty(t, f.Help, path)
		require.Equal(t, want, answers.Field{Type: f.Type, Options: f.Options, Default: f.Default, Example: f.Example, Required: f.Required}, path)
	}
	f, wrong := s.Field("state.credentials")
	require.Nil(t, wrong)
	require.Equal(t, answers.Mapping, f.Type)
	var all []string
	for _, f := range s.Fields("") {
		all = append(all, f.Path)
	}
	require.Subset(t, all, []string{"apiVersion", "provider", "global.admin.email", "aws.jumpHost.allow", "onprem.kubeconfig", "platform.settings.theme"})
}

func TestAnUnknownFieldIsNamedWithTheNearest(t *testing.T) {
	s := schema(t, settings)
	for path, want := range map[string]string{
		"global.nmae":            `global.nmae: got an unknown field, want "name"`,
		"aws.region.x":           `aws.region.x: got an unknown field, want a field of the configuration, such as global.name`,
		"platform.settings.rwos": `platform.settings.rwos: got an unknown field, want "rows"`,
		"global":                 `global: got an answer for a section, want one for a field in it: name, domain, admin, scale`,
		"global..name":           `global..name: got an unknown field, want a field of the configuration, such as global.name`,
	} {
		_, wrong := s.Field(path)
		require.NotNil(t, wrong, path)
		require.Equal(t, want, wrong.String())
	}
}

func TestAnswersBecomeWhatTheFieldHolds(t *testing.T) {
	s := schema(t, "")
	pem := filepath.Join(t.TempDir(), "cert.pem")
	require.NoError(t, os.WriteFile(pem, []byte("-----BEGIN\nx\n-----END\n"), 0o600))
	given, problems := s.Assignments([]string{
		"aws.roles=a, b", "local.ports=80,443", "global.scale=100", "global.name=123", "platform.components.toolbox.enabled=true",
		"state.credentials=A=env:X, B=file:/y", "tls.certificate=@" + pem, "global.domain=@@x", "proxy.noProxy=a,b", "platform.components.web.values={replicas: 2}",
	})
	require.Empty(t, problems)
	d := draft(t, s, "")
	for _, g := range given {
		require.Nil(t, d.Set(g.Field, g.Answer), g.Field.Path)
	}
	require.Equal(t, `apiVersion: slipway.sh/v1
global:
  name: "123"
  domain: '@x'
  scale: 100
platform:
  components:
    toolbox:
      enabled: true
    web:
      values: {replicas: 2}
tls:
  certificate: |
    -----BEGIN
    x
    -----END
proxy:
  noProxy: a,b
state:
  credentials:
    A: env:X
    B: file:/y
aws:
  roles: [a, b]
local:
  ports: [80, 443]
`, file(t, d))
	for _, g := range given {
		if g.Field.Type == answers.List || g.Field.Type == answers.Mapping {
			require.Equal(t, strings.ReplaceAll(g.Answer, ", ", ","), d.Get(g.Field.Path), "it reads back as it is written")
		} else if g.Field.Type != answers.Other {
			require.Equal(t, g.Answer, d.Get(g.Field.Path))
		}
	}
}

func TestWhatIsNoAnswerIsSaidForAllOfThem(t *testing.T) {
	s := schema(t, "")
	given, problems := s.Assignments([]string{"global.name", "=x", "nope=1", "tls.ca=@/nowhere/at/all"})
	require.Empty(t, given)
	require.Len(t, problems, 4)
	require.Equal(t, "tls.ca: got open /nowhere/at/all: no such file or directory, want the path of a file that can be read", problems[3].String())
	d := draft(t, s, "")
	for answer, want := range map[string]string{
		"global.scale=many":                       `global.scale: got "many", want 50, 100, 500 or 1000`,
		"local.ports=80,,1":                       `local.ports: got a list with an empty item, want items separated by commas`,
		"local.ports=http":                        `local.ports: got "http", want whole numbers separated by commas`,
		"platform.components.toolbox.enabled=yes": `platform.components.toolbox.enabled: got "yes", want true or false`,
		"state.credentials=secret":                `state.credentials: got "secret", want NAME=value, separated by commas`,
		"platform.components.toolbox.values={":    `platform.components.toolbox.values: got something that is not YAML, want a value in YAML, such as {replicas: 2}`,
	} {
		given, problems := s.Assignments([]string{answer})
		require.Empty(t, problems, answer)
		wrong := d.Set(given[0].Field, given[0].Answer)
		require.NotNil(t, wrong, answer)
		require.Equal(t, want, wrong.String())
	}
	require.Equal(t, "apiVersion: slipway.sh/v1\n", file(t, d), "nothing of it was applied")
}

func TestAnEarlierFileStaysWhereNothingIsAnswered(t *testing.T) {
	s := schema(t, "")
	d := draft(t, s, `# ours
apiVersion: slipway.sh/v1
global:
  scale: 50 # small
  name: blue
hooks:
  - {name: tell, after: workflow, run: [true]}
proxy: {}
`)
	set := func(path, answer string) {
		f, wrong := s.Field(path)
		require.Nil(t, wrong)
		require.Nil(t, d.Set(f, answer))
	}
	set("global.scale", "100")
	set("global.domain", "x.example")
	set("proxy.http", "http://p:1")
	set("platform.release", "1.0.0")
	require.Equal(t, `# ours
apiVersion: slipway.sh/v1
global:
  domain: x.example
  scale: 100 # small
  name: blue
platform:
  release: 1.0.0
hooks:
  - {name: tell, after: workflow, run: [true]}
proxy:
  http: http://p:1
`, file(t, d))
	set("proxy.http", "")
	require.False(t, d.Has("proxy"), "an empty section goes")
}

func TestTheConfigurationOfARunIsMadeReadable(t *testing.T) {
	s := schema(t, "")
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: blue}\nsmtp: {host: a.example, from: a@b.example, username: \"$${x}\", password: \"env:X\"}\nlocal: {ports: [80]}\nplatform: {components: {web: {values: {a: \"\", b: {}, c: []}}}}\nhooks: [{name: tell, after: workflow, script: \"a\\nb\\n\", env: {EMPTY: \"\"}}]\n"),
		config.Options{DefaultProvider: "local", Env: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	readable, err := answers.Readable(s, cfg.Canonical())
	require.NoError(t, err)
	text := file(t, draft(t, s, string(readable)))
	require.Contains(t, text, "global:\n  name: blue\n")
	require.Contains(t, text, "script: |\n      a\n      b\n")
	require.Contains(t, text, "ports: [80]")
	require.Contains(t, text, "username: $${x}")
	require.NotContains(t, text, "state: ")
	require.NotContains(t, text, "email: \"\"")
	again, err := config.Load([]byte(text), config.Options{DefaultProvider: "local", Env: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	require.Equal(t, string(cfg.Canonical()), string(again.Canonical()), "it is the same configuration")
}

func TestAFileInFlowStyleStaysAsItIs(t *testing.T) {
	s := schema(t, "")
	base := `{apiVersion: slipway.sh/v1, global: {name: blue, domain: "${D:-x.example}"}, hooks: [{name: a, after: workflow, run: [x], env: {E: ""}}], platform: {components: {web: {values: {n: {}, l: []}}}}}`
	text := file(t, draft(t, s, base))
	require.Equal(t, strings.ReplaceAll(base, `"${D:-x.example}"`, `"${D:-x.example}"`), strings.TrimSpace(text))
	for _, base := range []string{"- a\n", "text\n", "[a, b]"} {
		_, err := answers.NewDraft(s, []byte(base))
		require.ErrorContains(t, err, "it is no mapping")
	}
	require.Equal(t, "apiVersion: slipway.sh/v1\n", file(t, draft(t, s, "# nothing\n")))
}

func TestWhatIsAsItWasStaysAsItIsWritten(t *testing.T) {
	v := interview(t, `apiVersion: slipway.sh/v1
global:
  name: 'blue' # ours
  scale: 50
platform:
  release: "1.0.0"
  settings: {theme: dark, text: "a\nb"}
local:
  ports:
    - 80 # http
    - 443
aws:
  roles: ["a,b"]
tls: {mode: self-signed} # not ours
`)
	d, problems := v.Complete("aws")
	require.Empty(t, problems)
	text := file(t, d)
	for _, part := range []string{"name: 'blue' # ours\n", "release: \"1.0.0\"\n", "- 80 # http\n", "roles: [\"a,b\"]\n", "tls: {mode: self-signed} # not ours\n", `"a\nb"`} {
		require.Contains(t, text, part)
	}
	for _, p := range v.Pending(v.Schema.Rest("aws", nil)) {
		for _, q := range p.Questions {
			require.NotEqual(t, "aws.roles", q.Path, "an item with a comma does not fit on one line")
		}
	}
}

func TestSettingsOfAPlatform(t *testing.T) {
	s := schema(t, `{"type": "object", "properties": {
		"color": {"enum": ["red", "blue"], "type": "string"}, "on": {"type": "boolean"}, "ratio": {"type": "number", "default": 0.5},
		"mail": {"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}, "port": {"type": "integer", "default": 25}}},
		"list": {"type": "array", "items": {"type": "object"}}}}`)
	v := &answers.Interview{Schema: s, Draft: draft(t, s, ""), Given: map[string]bool{}, Check: check}
	require.Empty(t, answers.Missing(draft(t, s, "global: {name: a, scale: 50}"), s.Must("local")), "a field required only within an optional mapping is not")
	var asked []string
	pages := v.Pending(s.Rest("local", nil))
	before := v.Before(pages)
	for _, p := range pages {
		for _, q := range p.Questions {
			if strings.HasPrefix(q.Path, "platform.settings") {
				asked = append(asked, q.Path+"="+before[q.Path])
			}
			if q.Path == "platform.settings.color" || q.Path == "platform.settings.on" {
				require.Equal(t, answers.Option{Label: "(left out)"}, q.Choices[0])
			}
		}
	}
	require.Equal(t, []string{"platform.settings.color=", "platform.settings.on=", "platform.settings.ratio=0.5"}, asked)
	d, problems := v.With(pages, before)
	require.Empty(t, problems)
	require.Contains(t, file(t, d), "settings:\n    ratio: 0.5\n")

	odd := schema(t, `{"type": "object", "properties": {"a": {"type": ["string", "null"]}}}`)
	f, wrong := odd.Field("platform.settings")
	require.Nil(t, wrong, "fields of an unsupported schema are not asked for")
	require.Equal(t, answers.Other, f.Type)
}

func TestVariablesAnswer(t *testing.T) {
	s := schema(t, settings)
	given, unknown := s.Environment([]string{
		"SLIPWAY_CONFIG_GLOBAL_NAME=blue", "SLIPWAY_CONFIG_AWS_VPC_ID=vpc-1", "SLIPWAY_CONFIG_PLATFORM_SETTINGS_THEME=dark",
		"SLIPWAY_CONFIG_PLATFORM_COMPONENTS_TOOL_BOX_ENABLED=true", "SLIPWAY_CONFIG_GLOBAL_NMAE=x", "SLIPWAY_CONFIG_TLS_MODE=",
		"SLIPWAY_CONFIG_SMTP_USERNAME=a${b}$$", "PATH=/bin", "SLIPWAY_BUNDLE=/x",
	}, []string{"tool-box"})
	require.Equal(t, []string{"SLIPWAY_CONFIG_GLOBAL_NMAE"}, unknown)
	got := map[string]string{}
	for _, g := range given {
		require.Equal(t, g.Field.EnvName(), g.By)
		got[g.Field.Path] = g.Answer
	}
	require.Equal(t, map[string]string{
		"global.name": "blue", "aws.vpcId": "vpc-1", "platform.settings.theme": "dark",
		"platform.components.tool-box.enabled": "true", "smtp.username": "a$${b}$$$$",
	}, got)
}

func TestEveryQuestionIsThatOfAFieldAndEveryFieldIsAsked(t *testing.T) {
	s := schema(t, settings)
	for _, provider := range providers.All().Names() {
		asked := map[string]bool{"apiVersion": true, "hooks": true, "platform.components": true, "platform.secrets": true, "tls.mode": true}
		for _, p := range append(s.First(), s.Rest(provider, []answers.Component{{Name: "toolbox"}})...) {
			require.NotEmpty(t, p.Title)
			for _, q := range p.Questions {
				require.NotEmpty(t, q.Help, q.Path)
				asked[q.Path] = true
			}
		}
		for _, f := range s.Fields("") {
			section, _, _ := strings.Cut(f.Path, ".")
			other := section != provider && slices.Contains(providers.All().Names(), section)
			require.Equal(t, !other, asked[f.Path], "%s with provider %s", f.Path, provider)
		}
	}
}
