package gotool

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		name      string
		command   Command
		args, env []string
	}{
		{"plain", Command{Package: "."},
			[]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", "out", "."},
			[]string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off"}},
		{"everything", Command{Package: "example.com/x", CGO: true, Tags: []string{"a", "b"}, LDFlags: []string{"-s", "-X", "m.v=a"}, System: "darwin/arm64"},
			[]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-tags", "a,b", "-ldflags", "-s -X m.v=a", "-o", "out", "example.com/x"},
			[]string{"CGO_ENABLED=1", "GOFLAGS=", "GOWORK=off", "GOOS=darwin", "GOARCH=arm64"}},
		{"by a cross compiler", Command{Package: ".", CGO: true, System: "linux/arm64", CC: "aarch64-linux-gnu-gcc"},
			[]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", "out", "."},
			[]string{"CGO_ENABLED=1", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOARCH=arm64", "CC=aarch64-linux-gnu-gcc"}},
		{"without C", Command{Package: ".", System: "linux/arm64", CC: "aarch64-linux-gnu-gcc"},
			[]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", "out", "."},
			[]string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOARCH=arm64"}},
	} {
		require.Equal(t, c.args, c.command.arguments("out"), c.name)
		require.Equal(t, c.env, c.command.environment(), c.name)
	}
}

// module writes a command that prints its version variable and what a module
// beside it says.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tool/go.mod":     "module example.com/tool\n\ngo 1.24\n\nrequire example.com/lib v0.0.0\n\nreplace example.com/lib => ../lib\n",
		"tool/main.go":    "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/lib\"\n)\n\nvar version = \"none\"\n\nfunc main() { fmt.Print(version, \" \", lib.Word) }\n",
		"tool/x_test.go":  "package main\n",
		"lib/go.mod":      "module example.com/lib\n\ngo 1.24\n",
		"lib/lib.go":      "package lib\n\nconst Word = \"one\"\n",
		"lib/lib_test.go": "package lib\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return filepath.Join(dir, "tool")
}

func TestBuildIsKeptAndReproducible(t *testing.T) {
	command := func() Command {
		return Command{Name: "tool", Module: module(t), Package: ".", LDFlags: []string{"-s", "-w", "-X", "main.version=v1"}}
	}
	var first []byte
	for i := range 2 { // from two folders, into two stores
		st, err := build.OpenStore(t.TempDir())
		require.NoError(t, err)
		c := command()
		path, hit, err := c.Build(t.Context(), st)
		require.NoError(t, err)
		require.False(t, hit)
		out, err := exec.Command(path).Output()
		require.NoError(t, err)
		require.Equal(t, "v1 one", string(out))
		_, hit, err = c.Build(t.Context(), st)
		require.NoError(t, err)
		require.True(t, hit)
		bin, err := os.ReadFile(path)
		require.NoError(t, err)
		if i == 0 {
			first = bin
		}
		require.True(t, string(first) == string(bin), "the same source in another folder gives another binary")
	}
}

func TestKeyFollowsItsInputs(t *testing.T) {
	key := func(change func(c *Command)) build.Key {
		c := Command{Name: "tool", Module: module(t), Package: "."}
		if change != nil {
			change(&c)
		}
		k, err := c.Key(t.Context())
		require.NoError(t, err)
		return k
	}
	edit := func(name, text string) func(c *Command) {
		return func(c *Command) {
			require.NoError(t, os.WriteFile(filepath.Join(c.Module, name), []byte(text), 0o644))
		}
	}
	base := key(nil)
	require.Equal(t, base, key(nil))
	require.Equal(t, base, key(edit("x_test.go", "package other\n")))
	require.Equal(t, base, key(func(c *Command) { c.Env = []string{"LIBRARY=/another/checkout"} }))
	require.Equal(t, base, key(edit("../lib/lib_test.go", "package other\n")))
	for what, change := range map[string]func(c *Command){
		"a source file":           edit("main.go", "package main\n\nfunc main() {}\n"),
		"a local module's source": edit("../lib/lib.go", "package lib\n\nconst Word = \"two\"\n"),
		"go.sum":                  edit("go.sum", "x"),
		"an embedded file":        edit("data.txt", "x"),
		"ldflags":                 func(c *Command) { c.LDFlags = []string{"-s"} },
		"tags":                    func(c *Command) { c.Tags = []string{"netgo"} },
		"package":                 func(c *Command) { c.Package = "./x" },
		"library":                 func(c *Command) { c.Linked = "sha256" },
	} {
		require.NotEqual(t, base, key(change), what)
	}
	t.Setenv("GOARCH", "s390x")
	require.NotEqual(t, base, key(nil), "architecture")
}

func TestFailedBuildShowsTheCompiler(t *testing.T) {
	c := Command{Name: "tool", Module: module(t), Package: "."}
	require.NoError(t, os.WriteFile(filepath.Join(c.Module, "main.go"), []byte("package main\n\nfunc main() { undefinedThing() }\n"), 0o644))
	err := c.Compile(t.Context(), filepath.Join(t.TempDir(), "out"))
	require.ErrorContains(t, err, "undefined: undefinedThing")
	require.ErrorContains(t, err, "build tool")
}
