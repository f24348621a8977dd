package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
)

// keptDeployments are deployments of these names in a folder of the test's own; text
// follows what each must have.
func keptDeployments(t *testing.T, text string, names ...string) config.Folder {
	t.Helper()
	t.Setenv(config.EnvFolder, t.TempDir())
	folder, err := config.DefaultFolder()
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, folder.Write(name, []byte("apiVersion: slipway.sh/v1\nglobal: {name: "+name+"}\n"+text)))
	}
	return folder
}

func TestTwoDeploymentsAreBothUsable(t *testing.T) {
	folder := keptDeployments(t, "provider: local\n", "staging", "prod")
	for _, name := range []string{"staging", "prod", "staging"} {
		code, out, errs := slipway("use", name)
		require.Zero(t, code, errs)
		require.Equal(t, "deployment "+name+" is the current one: "+folder.File(name)+"\n", out)
		code, out, errs = slipway("validate")
		require.Zero(t, code, errs)
		require.Equal(t, "valid: deployment "+name+" on local, platform reference 1.0.0\n", out)
		require.Equal(t, "slipway: deployment "+name+" (chosen with slipway use; --name chooses another)\n"+inVain, errs)

		code, out, errs = slipway("validate", "--name", "prod")
		require.Zero(t, code, errs)
		require.Contains(t, out, "deployment prod ")
		require.Equal(t, inVain, errs, "it is on the command line")
	}
}

func TestWhichConfigurationIsTaken(t *testing.T) {
	folder := keptDeployments(t, "", "a", "b", "current")
	require.NoError(t, folder.Use("current"))
	file := configFile(t, "apiVersion: slipway.sh/v1\nglobal: {name: file}\n")
	const other = "; --name chooses another)\n"
	for what, c := range map[string]struct {
		args      []string
		env       string
		name, say string
	}{
		"a file":              {[]string{"--config", file}, "a", "file", ""},
		"a file and a name":   {[]string{"--config", file, "--name", "a"}, "b", "a", ""},
		"a name that is kept": {[]string{"--name", "a"}, "b", "a", ""},
		"a name that is not":  {[]string{"--name", "new"}, "b", "new", ""},
		"a mistyped name":     {[]string{"--name", "curent"}, "b", "curent", "slipway: no configuration is stored as \"curent\", so the defaults apply; did you mean current?\n"},
		"the environment":     {nil, "b", "b", "slipway: deployment b (chosen with SLIPWAY_DEPLOYMENT" + other},
		"the current one":     {nil, "", "current", "slipway: deployment current (chosen with slipway use" + other},
		"standard input":      {[]string{"--config", "-"}, "a", "slipway", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv(source.EnvDeployment, c.env)
			code, out, errs := slipway(append([]string{"env"}, c.args...)...)
			require.Zero(t, code, errs)
			require.Contains(t, out, "export SLIPWAY_CONFIG_GLOBAL_NAME='"+c.name+"'\n")
			require.Equal(t, c.say, errs)
		})
	}

	require.NoError(t, folder.Use(""))
	code, out, errs := slipway("validate")
	require.Zero(t, code, errs)
	require.Contains(t, out, "deployment slipway ", "the defaults")
	require.Equal(t, inVain, errs)

	require.NoError(t, folder.Use("a"))
	t.Setenv(usage.EnvModule, "1")
	t.Setenv(source.EnvDeployment, "b")
	code, out, errs = slipway("validate")
	require.Zero(t, code, errs)
	require.Contains(t, out, "deployment slipway ", "nothing is kept in the module")
	require.Equal(t, inVain, errs)
}

// CI has no home now and then, and no deployment there: nothing asks for one.
func TestWithoutAHomeTheDefaultsAreTaken(t *testing.T) {
	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", config.EnvFolder} {
		t.Setenv(variable, "")
	}
	for _, args := range [][]string{{"validate"}, {"env", "--name", "slipway"}} {
		code, out, errs := slipway(args...)
		require.Zero(t, code, errs)
		require.Contains(t, out, "slipway")
		require.Empty(t, strings.TrimPrefix(errs, inVain))
	}
}

func TestDeploymentsThatCannotBeTaken(t *testing.T) {
	folder := keptDeployments(t, "", "staging")
	require.NoError(t, folder.Write("prod", []byte("apiVersion: slipway.sh/v1\nglobal: {name: staging}\n")))
	require.NoError(t, folder.Write("broken", []byte("apiVersion: slipway.sh/v1\nglobal: {name: broken, scale: 3}\n")))
	file := configFile(t, "apiVersion: slipway.sh/v1\n")
	for what, c := range map[string]struct {
		args []string
		env  string
		says []string
	}{
		"an empty one":            {[]string{"status", "--name", ""}, "staging", []string{"--name is empty"}},
		"an empty one and a file": {[]string{"status", "--name", "", "--config", file}, "", []string{"--name is empty"}},
		"no name":                 {[]string{"status", "--name", "../x"}, "", []string{"CFG-001", "--name"}},
		"not kept, to migrate":    {[]string{"config", "migrate", "--name", "other"}, "", []string{"--name NAME of a stored configuration"}},
		"not kept, environment":   {[]string{"status"}, "gone", []string{"CFG-008", `SLIPWAY_DEPLOYMENT: find deployment "gone"`}},
		"another one's":           {[]string{"status", "--name", "prod"}, "", []string{"CFG-011", "kept as deployment prod", "global.name in it is staging", "set global.name to prod", folder.File("prod")}},
		"another one's, checked":  {[]string{"validate", "--name", "prod"}, "", []string{"CFG-011"}},
		"a mistake":               {[]string{"status", "--name", "broken"}, "", []string{"CFG-001", "read " + folder.File("broken"), "line 2: global.scale", "slipway validate checks it without starting anything (with the same flags: --name broken)"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv(source.EnvDeployment, c.env)
			code, _, errs := slipway(c.args...)
			require.Equal(t, 2, code, errs)
			for _, text := range c.says {
				require.Contains(t, errs, text)
			}
		})
	}

	require.NoError(t, folder.Use("staging"))
	require.NoError(t, os.Remove(folder.File("staging")))
	code, _, errs := slipway("status")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-008")
	require.Contains(t, errs, "slipway use NAME")
}

// What is relative in a file that is kept is so to where it is.
func TestAPlatformReleaseBesideWhatIsKept(t *testing.T) {
	folder := keptDeployments(t, "platform: {release: ./mine}\n", "staging")
	code, _, errs := slipway("config", "explain", "--name", "staging")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-003")
	require.Contains(t, errs, filepath.Join(filepath.Dir(folder.File("staging")), "mine"))
}

func TestWhatIsKeptIsMigratedByName(t *testing.T) {
	folder := keptDeployments(t, "")
	require.NoError(t, folder.Write("blue", []byte(older)))
	code, _, errs := slipway("validate", "--name", "blue")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "slipway config migrate --name blue writes it so")

	code, out, errs := slipway("config", "migrate", "--name", "blue")
	require.Zero(t, code, errs)
	require.Equal(t, folder.File("blue")+" is now of version slipway.sh/v1; the original is "+folder.File("blue")+".orig\n", out)
	for _, file := range []string{folder.File("blue"), folder.File("blue") + ".orig"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	names, err := folder.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"blue"}, names)
	code, _, errs = slipway("validate", "--name", "blue")
	require.Zero(t, code, errs)
	require.Equal(t, inVain, errs)
}

// What was chosen before a command that fails is in the commands of its remedy.
func TestTheRemedyOfADeploymentNamesIt(t *testing.T) {
	keptDeployments(t, "", "dev")
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
	code, _, errs := slipway("toolchain", "--name", "dev")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "such as: slipway toolchain --name dev -- kubectl")
	code, _, errs = slipway("status", "--name", "dev")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "BUN-006")
}

// Every command that takes a configuration takes a deployment by name.
func TestEveryCommandTakesADeployment(t *testing.T) {
	takes := 0
	every(tree(t), func(c *cobra.Command) {
		if c.Flag("config") == nil {
			return
		}
		require.NotNil(t, c.Flag("name"), c.CommandPath())
		takes++
	})
	require.GreaterOrEqual(t, takes, 12)
}
