package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// page is what is pressed on the form, and what the screen shows after it.
type page struct {
	text string
	keys []string
}

// form starts slipway configure in tmux, which writes slipway.yaml in dir, and keeps
// deployments in config; more are variables, NAME=value.
func (d deployment) form(t *testing.T, dir, config string, more []string, args ...string) *screen {
	t.Helper()
	env := []string{"-u", "AWS_REGION", "-u", "AWS_DEFAULT_REGION", "-u", "HTTP_PROXY", "-u", "http_proxy", "-u", "HTTPS_PROXY", "-u", "https_proxy",
		"-u", "NO_PROXY", "-u", "no_proxy", "-u", "ACCESSIBLE", "-u", "CI", "SLIPWAY_CONFIG_DIR=" + config, "SLIPWAY_DEPLOYMENT="}
	return inTmux(t, dir, append(env, more...), filepath.Join(d.Bundle, "bin", "slipway"), append([]string{"configure"}, args...)...)
}

// TestForm fills in the form for each provider on a real terminal, and compares what
// it shows with goldens.
func TestForm(t *testing.T) {
	t.Parallel()
	d := open(t, "e2e-form")
	for provider, pages := range map[string][]page{
		"local": {
			{"What is installed, and where", nil},
			{"The deployment", []string{"Enter", "Enter"}},
			{"want 1 to 15 lower-case", []string{"=X"}},
			{"> ops@", []string{"C-u", "=blue", "Enter", "Enter", "=ops@"}},
			{"Provider local", []string{"=example.com", "Enter", "Down", "Enter"}},
			{"want whole numbers", []string{"=80,x"}},
			{"The platform", []string{"BSpace", "=443", "Enter", "Enter", "Enter", "Enter"}},
			{"More", []string{"Down", "Down", "Space", "Enter"}},
			{"smtp.host", []string{"Down", "Down", "Space", "Enter"}},
			{"go back to leave smtp out", []string{"Enter"}},
			{"itself does not belong in this file", []string{"=mail.example.com", "Enter", "Enter", "=me@example.com", "Enter", "Enter", "=me", "Enter", "=secret"}},
			{"Write it to slipway.yaml?", []string{"C-u", "=env:MAIL", "Enter"}},
			{"[exit 0]", []string{"Enter"}},
		},
		"aws": {
			{"What is installed, and where", nil},
			{"The deployment", []string{"Up", "Up", "Up", "Enter", "Enter"}},
			{"Provider aws", []string{"C-u", "=green", "Enter", "=green.example", "Enter", "Enter", "Enter"}},
			{"want a region such as", []string{"=europe"}},
			{"want the id of a VPC", []string{"C-u", "=us-w", "C-e", "Enter", "Enter", "Enter", "=vpc-1"}},
			{"The platform", []string{"C-u", "Enter", "=team-blue", "Enter", "=admin,ops", "Enter", "=192.0.2.0/24", "Enter"}},
			{"Provider aws", []string{"BTab"}},
			{"More", []string{"Enter", "Enter"}},
			{"Write it to slipway.yaml?", []string{"Enter"}},
			{"[exit 0]", []string{"Enter"}},
		},
		"azure": {
			{"What is installed, and where", nil},
			{"The deployment", []string{"Enter", "Enter"}},
			{"What is installed, and where", []string{"BTab"}}, // the wrong provider
			{"The deployment", []string{"Up", "Up", "Enter", "Enter"}},
			{"Provider azure", []string{"C-u", "=green", "Enter", "=green.example", "Enter", "Enter", "Enter"}},
			{"got nothing", []string{"Enter"}},
			{"The platform", []string{"=01234567-89ab-cdef-0123-456789abcdef", "Enter", "=germanywestcentral", "Enter", "Enter", "Enter"}},
			{"More", []string{"Enter"}},
			{"Write it to slipway.yaml?", []string{"Enter"}},
			{"[exit 0]", []string{"Enter"}},
		},
		"existing": {
			{"What is installed, and where", nil},
			{"The deployment", []string{"Up", "Enter", "Enter"}},
			{"Provider existing", []string{"C-u", "=green", "Enter", "=green.example", "Enter", "Enter", "Enter"}},
			{"want where", []string{"=/root/.kube/config"}},
			{"want host", []string{"C-u", "=file:admin.conf", "Enter", "=site", "Enter", "=fast", "Enter", "=https://registry"}},
			{"The platform", []string{"C-u", "=registry.internal:5000/slipway", "Enter"}},
			{"More", []string{"Enter"}},
			{"Write it to slipway.yaml?", []string{"Enter"}},
			{"[exit 0]", []string{"Enter"}},
		},
		"onprem": {
			{"What is installed, and where", nil},
			{"The deployment", []string{"Down", "Enter", "Enter"}},
			{"Provider onprem", []string{"C-u", "=green", "Enter", "=green.example", "Enter", "Enter", "Enter"}},
			{"want where", []string{"=apiVersion"}},
			{"The platform", []string{"C-u", "=file:admin.conf", "Enter", "=site", "Enter", "=fast", "Enter", "=192.0.2.10-192.0.2.20", "Enter"}},
			{"More", []string{"Enter"}},
			{"tls.certificate", []string{"Space", "Enter"}},
			{"no such file", []string{"=nowhere.pem"}},
			{"Write it to slipway.yaml?", []string{"C-u", "=cert.pem", "Enter", "Enter", "=file:key.pem", "Enter"}},
			{"[exit 0]", []string{"Enter"}},
		},
	} {
		t.Run(provider, func(t *testing.T) {
			if !slices.Contains([]string{"local", "existing"}, provider) { // the others install nothing yet
				takesLong(t)
			}
			t.Parallel()
			dir := t.TempDir()
			if provider == "onprem" {
				cert, err := os.ReadFile("testdata/cert.pem")
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), cert, 0o600))
			}
			s := d.form(t, dir, t.TempDir(), nil, "--out", "slipway.yaml")
			for _, p := range pages {
				s.after(p.text, p.keys...)
				if provider == "local" && p.text == "The deployment" {
					drawn(t, "form", s.picture())
				}
			}
			s.requireStory("form/" + provider + ".txt")
			validate := exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin", "slipway"), "validate", "--config", filepath.Join(dir, "slipway.yaml"))
			if provider == "existing" { // whose images do not come from a bundle
				validate.Env = append(os.Environ(), "SLIPWAY_BUNDLE=")
			}
			out, err := validate.CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
}

// TestFormThatIsLeft: whoever leaves the form, in which way ever, finds everything as
// it was.
func TestFormThatIsLeft(t *testing.T) {
	t.Parallel()
	d := open(t, "e2e-form")
	for name, c := range map[string]struct {
		env    []string
		keys   []string
		says   []string
		before string // what is seen before the last key
		enter  string // until this is seen, Enter is pressed first
	}{
		"Ctrl-C":                       {nil, []string{"Enter", "Enter", "=x", "C-c"}, []string{"error RUN-001: configure: interrupted", "nothing was written", "[exit 7]"}, "", ""},
		"Ctrl-C at the question":       {[]string{"SLIPWAY_CONFIG_PLATFORM_RELEASE=1.0.0"}, []string{"C-c"}, []string{"[exit 7]"}, "", "Replace slipway.yaml with it?"},
		"Ctrl-C, for a reader":         {[]string{"ACCESSIBLE=1"}, []string{"Enter", "Enter", "=blue", "C-c"}, []string{"stopping", "[exit 7]"}, "", ""},
		"the end, for a reader":        {[]string{"ACCESSIBLE=1"}, []string{"Enter", "C-d"}, []string{"the answers end here", "[exit 7]"}, "", ""},
		"No":                           {[]string{"SLIPWAY_CONFIG_PLATFORM_RELEASE=1.0.0"}, []string{"Up", "Enter"}, []string{"Nothing was written.", "[exit 0]"}, "", "Replace slipway.yaml with it?"},
		"a platform that is not there": {nil, []string{"Enter", "C-u", "=9.9.9", "Enter", "C-c"}, []string{"[exit 7]"}, `there is no release "9.9.9"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, config := t.TempDir(), t.TempDir()
			before := "apiVersion: slipway.sh/v1\nglobal: {name: blue, scale: 100} # ours\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "slipway.yaml"), []byte(before), 0o600))
			s := d.form(t, dir, config, c.env, "--out", "slipway.yaml")
			s.shows("provider")
			for n, asked := 0, c.enter == ""; !asked; n++ {
				require.Less(t, n, 30, "the screen does not show %q:\n%s", c.enter, s.picture())
				s.press("Enter") // one that comes between two fields is lost
				_, asked = s.until(time.Second, func(p string) bool { return strings.Contains(p, c.enter) })
			}
			s.press(c.keys[:len(c.keys)-1]...)
			if c.before != "" {
				s.shows(c.before)
			}
			s.press(c.keys[len(c.keys)-1])
			for _, text := range c.says {
				s.shows(text)
			}
			text, err := os.ReadFile(filepath.Join(dir, "slipway.yaml"))
			require.NoError(t, err)
			require.Equal(t, before, string(text))
			left, err := os.ReadDir(config)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestConfigureWithTheModule makes a configuration with `dagger call`, out of answers.
func TestConfigureWithTheModule(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	dir := t.TempDir()
	file := filepath.Join(dir, "slipway.yaml")
	r := d.call(t, "configure", "--set", "global.scale=75", "export", "--path", file)
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "global.name: got no answer")
	require.Contains(t, r.err, "global.scale: got 75, want 50, 100, 500 or 1000")
	require.NoFileExists(t, file)

	answers := write(t, "global: {name: blue, scale: 100}\nplatform: {release: ./mine}\n")
	d.ok(t, "configure", "--set", `"local.ports=80,443"`, "--answers", answers, "--platform", "examples/platform/1.0.0", "export", "--path", file)
	require.Contains(t, read(t, dir, "slipway.yaml"), "global:\n  name: blue\n  domain: slipway.test\n  scale: 100\nplatform:\n  release: ./mine\nlocal:\n  ports: [80, 443]\n")
}
