package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
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
	for name, h := range map[string]struct {
		header tar.Header
		text   string
		says   string
	}{
		"none":            {tar.Header{Name: "report/config.yaml"}, config, "name: shop"},
		"symbolic link":   {tar.Header{Typeflag: tar.TypeSymlink, Name: "config.yaml", Linkname: "@SECRET@"}, "", "there is no config.yaml"},
		"hard link":       {tar.Header{Typeflag: tar.TypeLink, Name: "config.yaml", Linkname: "@SECRET@"}, "", "there is no config.yaml"},
		"device":          {tar.Header{Typeflag: tar.TypeChar, Name: "config.yaml", Devmajor: 1, Devminor: 5}, "", "there is no config.yaml"},
		"parent":          {tar.Header{Name: "../../config.yaml"}, config, ""},
		"absolute":        {tar.Header{Name: "/etc/config.yaml"}, config, ""},
		"large":           {tar.Header{Name: "config.yaml"}, strings.Repeat("#\n", 1<<20), "larger than what is read of such a file, 1 MiB"},
		"name of escapes": {tar.Header{Name: "\x1b[31m/other.yaml"}, config, "there is no config.yaml"},
	} {
		add("archive: "+name, "an entry of the archive is no file of a report", h.says, "report.tar.gz", func(t *testing.T, s sandbox, at string) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			w := tar.NewWriter(z)
			h.header.Linkname, h.header.Size, h.header.Mode = s.fill(h.header.Linkname), int64(len(h.text)), 0o644
			require.NoError(t, w.WriteHeader(&h.header))
			_, err := w.Write([]byte(h.text))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, z.Close())
			require.NoError(t, os.WriteFile(at, b.Bytes(), 0o644))
		})
	}
	add("archive: zeros", "much of nothing is packed into little", "", "report.tar.gz", func(t *testing.T, _ sandbox, at string) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "other", Size: 256 << 20}))
		zeros := make([]byte, 1<<20)
		for range 256 {
			_, err := w.Write(zeros)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(at, b.Bytes(), 0o644))
	})
	add("archive: torn", "the archive is torn", "unpack report.tar.gz", "report.tar.gz", func(t *testing.T, s sandbox, _ string) { s.write(t, "report.tar.gz", []byte("\x1f\x8b\x08\x00")) })
	return out
}
