package gotool

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// published writes a tools module that pins a command of a module of a Go proxy, which says a
// word, and gives its folder.
func published(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	const module = "module example.com/speaker\n\ngo 1.24\n"
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, text := range map[string]string{
		"go.mod":       module,
		"main.go":      "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/speaker/word\"\n)\n\nfunc main() { fmt.Print(word.Word) }\n",
		"word/word.go": "package word\n\nconst Word = \"published\"\n",
		// This one is a link for other systems, which got lost.
		"loud/main.go":       "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/speaker/mark\"\n)\n\nfunc main() { fmt.Print(mark.Mark) }\n",
		"mark/mark_plan9.go": "package mark\n\nconst Mark = \"!\"\n",
	} {
		w, err := z.Create("example.com/speaker@v1.0.0/" + name)
		require.NoError(t, err)
		_, err = w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	write("proxy/example.com/speaker/@v/v1.0.0.info", `{"Version": "v1.0.0"}`)
	write("proxy/example.com/speaker/@v/v1.0.0.mod", module)
	write("proxy/example.com/speaker/@v/v1.0.0.zip", packed.String())
	write("tools/go.mod", "module example.com/tools\n\ngo 1.24\n\ntool example.com/speaker\n\nrequire example.com/speaker v1.0.0\n")
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.Join(root, "proxy"), "GOMODCACHE": filepath.Join(root, "cache"), "GOSUMDB": "off", "GOFLAGS": "", "GOWORK": "off",
	} {
		t.Setenv(name, value)
	}
	dir := filepath.Join(root, "tools")
	run := func(args ...string) {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	t.Cleanup(func() { run("clean", "-modcache") }) // its files are read-only
	run("mod", "tidy")
	return dir
}

func TestACommandIsBuiltWithOtherFilesThanItsModuleHas(t *testing.T) {
	dir := published(t)
	plain := Command{Name: "speaker", Module: dir, Package: "example.com/speaker"}
	changed := plain
	changed.Instead = &Instead{Module: "example.com/speaker", Files: "instead"}
	replace := func(name, text string) {
		path := filepath.Join(dir, "instead", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	replace("word/word.go", "package word\n\nimport \"example.com/beside\"\n\nconst Word = beside.Word\n")
	replace("../beside/go.mod", "module example.com/beside\n\ngo 1.24\n")
	replace("../beside/beside.go", "package beside\n\nconst Word = \"other\"\n")
	edit := exec.Command("go", "mod", "edit", "-require=example.com/beside@v0.0.0", "-replace=example.com/beside=./beside")
	edit.Dir = dir
	require.NoError(t, edit.Run())
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)

	var keys []string
	for word, c := range map[string]Command{"published": plain, "other": changed} {
		out := filepath.Join(t.TempDir(), "speaker")
		require.NoError(t, c.Compile(t.Context(), out))
		said, err := exec.Command(out).Output()
		require.NoError(t, err)
		require.Equal(t, word, string(said))
		key, err := c.Key(t.Context())
		require.NoError(t, err)
		keys = append(keys, key.String())
	}
	require.NotEqual(t, keys[0], keys[1])
	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "it is as it was")

	was, err := changed.Key(t.Context())
	require.NoError(t, err)
	replace("word/word.go", "package word\n\nconst Word = \"third\"\n")
	is, err := changed.Key(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, was, is)

	replace("word/more.go", "package word\n")
	err = changed.Compile(t.Context(), filepath.Join(t.TempDir(), "speaker"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "build speaker: put other files into the module example.com/speaker: ")
	changed.Instead.Module = "example.com/nobody"
	err = changed.Compile(t.Context(), filepath.Join(t.TempDir(), "speaker"))
	require.ErrorContains(t, err, "fetch the module example.com/nobody")
}

func TestALinkThatNoModuleHasIsThereAgain(t *testing.T) {
	dir, link := published(t), "mark/mark_"+runtime.GOOS+".go"
	c := Command{Name: "loud", Module: dir, Package: "example.com/speaker/loud"}
	out := filepath.Join(t.TempDir(), "loud")
	require.ErrorContains(t, c.Compile(t.Context(), out), "build constraints exclude all Go files")
	was, err := c.Key(t.Context())
	require.NoError(t, err)

	c.Instead = &Instead{Module: "example.com/speaker", Links: map[string]string{link: "mark/mark_plan9.go"}}
	require.NoError(t, c.Compile(t.Context(), out))
	said, err := exec.Command(out).Output()
	require.NoError(t, err)
	require.Equal(t, "!", string(said))
	is, err := c.Key(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, was, is)

	c.Instead.Links["word/word.go"] = "mark/mark_plan9.go"
	require.ErrorIs(t, c.Compile(t.Context(), out), os.ErrExist, "the module has it after all")
	other, err := c.Key(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, is, other)
}
