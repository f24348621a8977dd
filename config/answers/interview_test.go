package answers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
)

func interview(t *testing.T, text string) *answers.Interview {
	t.Helper()
	s := schema(t, settings)
	return &answers.Interview{Schema: s, Draft: draft(t, s, text), Check: check, Given: map[string]bool{},
		Components: []answers.Component{{Name: "guestbook", On: true}, {Name: "toolbox"}}}
}

func TestAFormThatIsLeftAsItStandsIsComplete(t *testing.T) {
	v := interview(t, "apiVersion: slipway.sh/v1\nglobal: {name: blue, scale: 100}\nplatform: {settings: {theme: dark}}\n")
	d, problems := v.Complete("local")
	require.Empty(t, problems)
	require.Equal(t, `apiVersion: slipway.sh/v1
provider: local
global: {name: blue, domain: slipway.test, scale: 100}
platform: {release: 1.0.0, settings: {theme: dark, rows: 10}}
`, file(t, d))
	again, problems := (&answers.Interview{Schema: v.Schema, Draft: d, Check: check, Components: v.Components}).Complete("local")
	require.Empty(t, problems)
	require.Equal(t, file(t, d), file(t, again), "once more changes nothing")
}

func TestAnswersToPages(t *testing.T) {
	v := interview(t, "apiVersion: slipway.sh/v1\nsmtp: {host: a.example, from: a@b.example}\n")
	pages := v.Schema.Rest("local", v.Components)
	before := v.Before(pages)
	require.Equal(t, "smtp", before[answers.Extras])
	require.Equal(t, "guestbook", before[answers.Components])
	require.Equal(t, "a.example", before["smtp.host"])
	require.Equal(t, "587", before["smtp.port"])

	before[answers.Extras], before[answers.Components], before["proxy.http"] = "proxy", "toolbox", " http://p:1 "
	before["global.name"], before["platform.settings.theme"] = "blue", "light"
	d, problems := v.With(pages, before)
	require.Empty(t, problems)
	require.Equal(t, `apiVersion: slipway.sh/v1
global:
  name: blue
  domain: slipway.test
  scale: 50
platform:
  components:
    guestbook:
      enabled: false
    toolbox:
      enabled: true
  settings:
    theme: light
    rows: 10
proxy:
  http: http://p:1
`, file(t, d), "what is not chosen goes")
	require.Equal(t, "a.example", v.Draft.Get("smtp.host"), "the draft itself is unchanged")
}

func TestACertificateIsTakenFromAFile(t *testing.T) {
	v := interview(t, "")
	pages := v.Schema.Rest("local", nil)
	all := v.Before(pages)
	all[answers.Extras], all["tls.key"], all["tls.certificate"] = "tls", "env:KEY", "/nowhere"
	_, problems := v.With(pages, all)
	require.Len(t, problems, 1)
	require.Equal(t, "tls.certificate", problems[0].Field)

	pem := filepath.Join(t.TempDir(), "cert.pem")
	require.NoError(t, os.WriteFile(pem, []byte("text\n"), 0o600))
	all["tls.certificate"] = pem
	d, problems := v.With(pages, all)
	require.Empty(t, problems)
	require.Equal(t, "given", d.Get("tls.mode"))
	require.Equal(t, "text\n", d.Get("tls.certificate"))
	v.Draft = d
	require.Empty(t, v.Before(pages)["tls.certificate"])
	all["tls.certificate"] = ""
	d, _ = v.With(pages, all)
	require.Equal(t, "text\n", d.Get("tls.certificate"), "without a file the value is unchanged")
}

func TestWhatIsWrongWithOneAnswer(t *testing.T) {
	v := interview(t, "apiVersion: slipway.sh/v1\nprovider: aws\n")
	pages := v.Schema.Rest("aws", nil)
	all := v.Before(pages)
	require.Empty(t, all["global.domain"], "slipway.test is for this machine only")
	all[answers.Extras] = "smtp,state"
	try := func(path, answer string) string {
		for _, p := range pages {
			for _, q := range p.Questions {
				if q.Path != path {
					continue
				}
				all[path] = answer
				if wrong := v.Try(pages, all, q); wrong != nil {
					return wrong.String()
				}
				return ""
			}
		}
		t.Fatalf("%s is not asked", path)
		return ""
	}
	require.Equal(t, "global.domain: got nothing, want an answer", try("global.domain", ""))
	require.Equal(t, "aws.region: got nothing, want an answer", try("aws.region", " "))
	require.Equal(t, `aws.region: got "x", want a region such as eu-central-1`, try("aws.region", "x"))
	require.Empty(t, try("aws.region", "eu-central-1"))
	require.Equal(t, `aws.jumpHost.allow[1]: got "b", want an IPv4 network such as 192.0.2.0/24`, try("aws.jumpHost.allow", "192.0.2.0/24,b"))
	require.Equal(t, "smtp.host: got nothing, want an answer; go back to leave smtp out", try("smtp.host", ""))
	require.Empty(t, try("smtp.host", "a.example"))
	require.Contains(t, try("smtp.from", ""), "got nothing, want a mail address")
	require.Empty(t, try("global.name", "blue"))
}

func TestWhatNobodySaysIsNamed(t *testing.T) {
	v := interview(t, "apiVersion: slipway.sh/v1\nprovider: aws\nglobal: {name: blue}\n")
	var got []string
	for _, p := range answers.Missing(v.Draft, v.Schema.Must("aws")) {
		got = append(got, p.Field)
		require.Contains(t, p.Want, "--set "+p.Field+"=…, "+config.EnvName(p.Field)+"=…")
	}
	require.Equal(t, []string{"global.domain", "global.scale", "aws.region", "platform.settings.theme"}, got)
}

// TestAReleasesTextIsOneLine of a problem.
func TestAReleasesTextIsOneLine(t *testing.T) {
	v := interview(t, "apiVersion: slipway.sh/v1\n")
	for _, f := range []answers.Field{{Path: "a", Help: "A.\nvalid: b\n\n  remedy: c"}, {Path: "a", Options: []string{"d\nerror", "e"}}} {
		problems := answers.Missing(v.Draft, []answers.Field{f})
		require.Len(t, problems, 1)
		require.NotContains(t, problems[0].Want, "\n")
	}
}
