package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// folder returns a folder with deployments of these names.
func folder(t *testing.T, names ...string) config.Folder {
	t.Helper()
	f := config.Folder(filepath.Join(t.TempDir(), "new", "slipway"))
	for _, name := range names {
		require.NoError(t, f.Write(name, []byte("# "+name+"\n")))
	}
	return f
}

func TestWhatIsKept(t *testing.T) {
	f := folder(t)
	names, err := f.Names()
	require.NoError(t, err)
	require.Empty(t, names, "there is no folder yet")
	current, err := f.Current()
	require.NoError(t, err)
	require.Empty(t, current)

	for _, name := range []string{"staging", "a", "a-b"} {
		require.NoError(t, f.Write(name, []byte("one\n")))
	}
	require.NoError(t, f.Write("a", []byte("two\n")))
	names, err = f.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a-b", "staging"}, names)
	text, err := os.ReadFile(f.File("a"))
	require.NoError(t, err)
	require.Equal(t, "two\n", string(text))

	dir := filepath.Dir(f.File("a"))
	for _, other := range []string{"b.yaml.orig", "notes.txt", "No Name.yaml", ".yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")))
	names, err = f.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a-b", "staging"}, names, "other files are left out")
}

func TestOnlyTheUserReadsWhatIsKept(t *testing.T) {
	f := folder(t, "a")
	require.NoError(t, os.Chmod(f.File("a"), 0o644))
	require.NoError(t, f.Write("a", []byte("new")))
	require.NoError(t, f.Use("a"))
	for path, want := range map[string]fs.FileMode{
		f.File("a"):                         0o600,
		filepath.Join(string(f), "current"): 0o600,
		filepath.Dir(f.File("a")):           fs.ModeDir | 0o700,
		string(f):                           fs.ModeDir | 0o700,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode(), path)
	}
}

func TestTheCurrentOneIsSwitched(t *testing.T) {
	f := folder(t, "a", "b")
	for _, name := range []string{"a", "b", "b", ""} {
		require.NoError(t, f.Use(name))
		current, err := f.Current()
		require.NoError(t, err)
		require.Equal(t, name, current)
	}
	require.NoError(t, f.Use(""), "none, again")

	require.NoError(t, f.Use("a"))
	err := f.Use("c")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-008"})
	current, err := f.Current()
	require.NoError(t, err)
	require.Equal(t, "a", current, "it is unchanged")

	require.NoError(t, os.Remove(f.File("a")))
	_, err = f.Current()
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-008"})
	require.ErrorContains(t, err, `names "a", which no longer exists`)
	require.NoError(t, os.WriteFile(filepath.Join(string(f), "current"), []byte("../b\n"), 0o600))
	_, err = f.Current()
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-008"})
	require.NoError(t, f.Use("b"))
}

func TestADeploymentThatIsNotKeptIsToldOf(t *testing.T) {
	_, err := folder(t, "prod", "staging").Find("stagin")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-008"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.EqualError(t, err, `find deployment "stagin": it does not exist; there are prod, staging; did you mean "staging"?`)
	_, err = folder(t, "prod").Find("x")
	require.EqualError(t, err, `find deployment "x": it does not exist; there are prod`)
	_, err = folder(t).Find("x")
	require.ErrorContains(t, err, "there are none in ")
}

// Only valid names become paths.
func TestNamesThatAreNone(t *testing.T) {
	f := folder(t, "a")
	outside := filepath.Join(string(f), "b.yaml")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	for _, name := range []string{"", "../b", "A", "a/b", ".", "a.yaml", "a-", "a\x00"} {
		require.Empty(t, f.File(name), name)
		there, err := f.Has(name)
		require.NoError(t, err)
		require.False(t, there, name)
		_, err = f.Find(name)
		require.ErrorIs(t, err, &fault.Fault{Code: "CFG-008"}, name)
		require.ErrorContains(t, f.Write(name, nil), "is not a valid name for a deployment", name)
	}
	names, err := f.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
}

func TestAFolderThatCannotBeUsed(t *testing.T) {
	f := folder(t, "a")
	current := filepath.Join(string(f), "current")
	require.NoError(t, os.MkdirAll(filepath.Join(current, "x"), 0o700))
	_, err := f.Current()
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-010"})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorIs(t, f.Use("a"), &fault.Fault{Code: "CFG-010"})
	require.ErrorIs(t, f.Use(""), &fault.Fault{Code: "CFG-010"})

	loop := filepath.Join(filepath.Dir(f.File("a")), "loop.yaml")
	require.NoError(t, os.Symlink(loop, loop))
	_, err = f.Has("loop")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-010"})
	_, err = f.Names()
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-010"})
	_, err = f.Find("x")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-010"})

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	f = config.Folder(file)
	there, err := f.Has("a")
	require.NoError(t, err)
	require.False(t, there, "nothing can be in a file")
	require.ErrorIs(t, f.Write("a", nil), &fault.Fault{Code: "CFG-010"})
}

func TestWhereTheFolderIs(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
	t.Setenv("SLIPWAY_CONFIG_DIR", filepath.Join(home, "mine"))
	f, err := config.DefaultFolder()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, "mine", "deployments", "a.yaml"), f.File("a"))

	t.Setenv("SLIPWAY_CONFIG_DIR", "here")
	f, err = config.DefaultFolder()
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(f.File("a")))

	t.Setenv("SLIPWAY_CONFIG_DIR", "")
	dir, err := os.UserConfigDir()
	require.NoError(t, err)
	f, err = config.DefaultFolder()
	require.NoError(t, err)
	require.Equal(t, config.Folder(filepath.Join(dir, "slipway")), f)

	t.Setenv("XDG_CONFIG_HOME", "relative")
	if _, err := os.UserConfigDir(); err != nil { // macOS does not ask for it
		_, err = config.DefaultFolder()
		require.ErrorIs(t, err, &fault.Fault{Code: "CFG-010"})
	}
}

func TestWhoHasNoHomeHasNoDeployments(t *testing.T) {
	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "SLIPWAY_CONFIG_DIR"} {
		t.Setenv(variable, "")
	}
	f, err := config.DefaultFolder()
	require.NoError(t, err)
	names, err := f.Names()
	require.NoError(t, err)
	require.Empty(t, names)
	current, err := f.Current()
	require.NoError(t, err)
	require.Empty(t, current)
	require.NoError(t, f.Use(""))
	for _, err := range []error{f.Write("a", nil), f.Use("a")} {
		require.ErrorIs(t, err, &fault.Fault{Code: "CFG-010"})
		require.ErrorContains(t, err, "neither HOME nor SLIPWAY_CONFIG_DIR is set")
	}
}
