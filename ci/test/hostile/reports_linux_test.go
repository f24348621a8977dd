package hostile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// reports are cases of reports that somebody sent, with which a configuration begins.
func reports() []testCase {
	var out []testCase
	add := func(name, tries, says, file string, make func(t *testing.T, s sandbox, at string)) {
		cmd := from([]string{"configure", "--file", file, "--out", "-"}, nil, rules{})
		out = append(out, testCase{name: "report/" + name, tries: tries, says: says, commands: []command{cmd}, make: func(t *testing.T, s sandbox) { make(t, s, s.path("work/"+file)) }})
	}
	const config = "apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50}\n"
	folder := func(name, tries, says, text string) {
		add("folder: "+name, tries, says, "report", func(t *testing.T, s sandbox, _ string) { s.write(t, "report/config.yaml", []byte(text)) })
	}
	folder("none", "the report as it should be", "name: shop", config)
	folder("hooks", "hooks run while it is read", "did not run", config+"hooks: [{name: h, after: workflow, workflows: [configure], run: [touch, '@ROOT@/tmp/ran'], secrets: {T: 'cmd:touch @ROOT@/tmp/ran'}}]\n")
	folder("variables", "the configuration takes a variable of the user", "", config+"proxy: {http: 'http://${SECRET_TOKEN}.example:1'}\n")
	folder("aliases", "the configuration is an alias of itself", "CFG-", aliases())
	folder("torn", "the configuration is torn", "CFG-", "{a: [")
	add("folder: link", "the configuration is a file of the user", "", "report", func(t *testing.T, s sandbox, at string) {
		require.NoError(t, os.Mkdir(at, 0o755))
		require.NoError(t, os.Symlink(s.path("secret"), filepath.Join(at, "config.yaml")))
	})
	add("folder: pipe", "the configuration is a pipe", "", "report", func(t *testing.T, _ sandbox, at string) {
		require.NoError(t, os.Mkdir(at, 0o755))
		require.NoError(t, syscall.Mkfifo(filepath.Join(at, "config.yaml"), 0o644))
	})
	add("archive", "an archive is no configuration", "got the byte 0x1f", "report.tar.gz", func(t *testing.T, s sandbox, _ string) { s.write(t, "report.tar.gz", []byte("\x1f\x8b\x08\x00")) })
	return out
}
