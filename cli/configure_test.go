package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

// kept is an empty folder for the configurations of the test's user.
func kept(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("SLIPWAY_CONFIG_DIR", dir)
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "SLIPWAY_CONFIG_") && name != "SLIPWAY_CONFIG_DIR" {
			t.Setenv(name, "")
		}
	}
	for _, name := range []string{"SLIPWAY_DEPLOYMENT", "ACCESSIBLE"} {
		t.Setenv(name, "")
	}
	return dir
}

// anything tells what is in a directory.
func anything(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return found
}

func TestConfigureNamesEverythingThatIsMissingOrWrong(t *testing.T) {
	dir := kept(t)
	code, out, errs := slipway("configure")
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, errs, "error CFG-001: configure: 2 problems:\n  global.name: got no answer")
	require.Contains(t, errs, "\n  global.scale: got no answer, want 50, 100, 500, 1000: --set global.scale=…, SLIPWAY_CONFIG_GLOBAL_SCALE=… or a line in --answers\n")

	code, _, errs = slipway("configure", "--set", "global.name=sixteencharacter", "--set", "global.scale=75", "--set", "provider=aws",
		"--set", "aws.vpcId=vpc-1", "--set", "tls.mode=given", "--set", "tls.certificate=none", "--set", "tls.key=env:KEY", "--set", "smtp.hots=x")
	require.Equal(t, 2, code)
	for _, want := range []string{
		"7 problems", `global.name: got "sixteencharacter", want`, "global.scale: got 75, want 50, 100, 500 or 1000", `aws.vpcId: got "vpc-1", want`,
		"tls.certificate: got text that is not PEM", `smtp.hots: got an unknown field, want "host"`, "aws.region: got no answer", "global.domain: got no answer",
	} {
		require.Contains(t, errs, want)
	}
	require.Empty(t, anything(t, dir), "nothing was written")
}

func TestConfigureKeepsTheFileByName(t *testing.T) {
	dir := kept(t)
	code, out, errs := slipway("configure", "--set", "global.name=blue", "--set", "global.scale=50")
	require.Zero(t, code, errs)
	file := filepath.Join(dir, "deployments", "blue.yaml")
	require.Equal(t, "The configuration of deployment blue is "+file+"\nIt is the current one: commands that name no deployment work on it (slipway use).\n\nNext:\n  slipway install --name blue\n", out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^# yaml-language-server: \$schema=https://\S+\napiVersion: slipway.sh/v1\nprovider: local\nglobal:\n  name: blue\n  domain: slipway.test\n  scale: 50\nplatform:\n  release: 1.0.0\n$`, string(text))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	code, out, errs = slipway("validate", "--name", "blue")
	require.Zero(t, code, errs)
	require.Contains(t, out, "valid: deployment blue on local")

	// Again, with one more answer: the rest stays.
	code, _, errs = slipway("configure", "--name", "blue", "--set", "local.ports=80,443")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "What it changes in "+file)
	require.Contains(t, errs, "ports:")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "scale: 50\n")
	require.Contains(t, string(text), "local:\n  ports: [80, 443]\n")

	// Another one is not in its way, nor is it replaced by one that began elsewhere.
	code, _, errs = slipway("configure", "--name", "green", "--set", "global.scale=100")
	require.Zero(t, code, errs)
	code, _, errs = slipway("configure", "--set", "global.name=green", "--set", "global.scale=50")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-012")
	require.Contains(t, errs, "green.yaml exists, and is another one")
	text, err = os.ReadFile(filepath.Join(dir, "deployments", "green.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "scale: 100")
	code, _, errs = slipway("configure", "--set", "global.name=green", "--set", "global.scale=50", "--force")
	require.Zero(t, code, errs)
	code, _, errs = slipway("configure", "--set", "global.name=green", "--set", "global.scale=50")
	require.Zero(t, code, errs, "the same once more")

	code, out, errs = slipway("use")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^\* blue\b`, out, "the first is the current one")
	require.Regexp(t, `(?m)^  green\b`, out)
}

func TestConfigureTakesAnswersInTheirOrder(t *testing.T) {
	kept(t)
	base := configFile(t, "apiVersion: slipway.sh/v1\nglobal: {name: base, domain: base.example, admin: {email: base@a.example}, scale: 1000}\nhooks: [{name: tell, after: workflow, run: [\"true\"]}]\n")
	fragment := configFile(t, "global:\n  name: fragment\n  admin: {email: fragment@a.example}\n")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_NAME", "variable")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_DOMAIN", "variable.example")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_NMAE", "x")
	code, out, errs := slipway("configure", "--file", base, "--answers", fragment, "--set", "global.name=set", "--out", "-")
	require.Zero(t, code, errs)
	require.Contains(t, out, "global: {name: set, domain: variable.example, admin: {email: fragment@a.example}, scale: 1000}\n")
	require.Contains(t, out, "hooks: [{name: tell, after: workflow, run: [\"true\"]}]\n")
	require.Contains(t, errs, "the variable SLIPWAY_CONFIG_GLOBAL_NMAE is for no field of this configuration")

	code, out, errs = slipway("configure", "--set", "provider=aws", "--set", "aws.region=eu-west-1", "--set", "global.scale=50", "--out", "-")
	require.Zero(t, code, errs)
	require.Contains(t, out, "aws:\n  region: eu-west-1\n  cidr: 10.250.0.0/16\n")
	code, out, _ = slipway("configure", "--set", "global.scale=50", "--out", "-")
	require.Zero(t, code)
	require.NotContains(t, out, "aws", "only the chosen provider's")
}

func TestConfigureRefuses(t *testing.T) {
	dir := kept(t)
	newer := configFile(t, "apiVersion: slipway.sh/v9\n")
	linked := t.TempDir()
	require.NoError(t, os.Symlink(newer, filepath.Join(linked, "config.yaml")))
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--file", "/nowhere/at/all"}, 2, "CFG-003"},
		{[]string{"--answers", "/nowhere/at/all"}, 2, "CFG-003"},
		{[]string{"--file", newer}, 2, "CFG-002"},
		{[]string{"--file", dir}, 2, "config.yaml"},
		{[]string{"--file", linked}, 2, "config.yaml is not a regular file"},
		{[]string{"--file", configFile(t, "a: [")}, 2, "CFG-001"},
		{[]string{"--answers", configFile(t, "a: [")}, 2, "answers"},
		{[]string{"--name", "Blue"}, 2, "--name is \"Blue\""},
		{[]string{"--name", "blue", "--set", "global.name=green", "--set", "global.scale=50"}, 2, "global.name"},
		{[]string{"--set", "global.name=a", "--set", "global.scale=50", "--set", "platform.release=9.9.9"}, 2, "platform.release: got there is no release \"9.9.9\""},
		{[]string{"--set", "global.name=a", "--set", "global.scale=50", "--set", "platform.release=./nowhere"}, 2, "platform.release"},
		{[]string{"--set", "global.name=a", "--set", "global.scale=50", "--set", "platform.settings.x=1"}, 2, "platform.settings: got this platform release has no settings"},
		{[]string{"--set", "global.name=a", "--set", "global.scale=50", "--set", "platform.components.nope.enabled=true"}, 2, "nope"},
		{[]string{"--set", "global.name=a", "--set", "global.scale=50", "--set", "smtp.password=hunter22"}, 2, "smtp.password"},
		{[]string{"extra"}, 2, "unexpected argument"},
	} {
		code, out, errs := slipway(append([]string{"configure"}, c.args...)...)
		require.Equal(t, c.code, code, "%v: %s", c.args, errs)
		require.Contains(t, errs, c.text, "%v", c.args)
		require.NotContains(t, errs, "hunter22")
		require.Empty(t, out)
	}
	require.Empty(t, anything(t, dir), "nothing was written")
}

func TestConfigureBeginsWithARun(t *testing.T) {
	kept(t)
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: blue, domain: a.example, scale: 100}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), cfg.Canonical(), 0o600))
	code, out, errs := slipway("configure", "--file", dir, "--out", "-")
	require.Zero(t, code, errs)
	again, err := config.Load([]byte(out), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, string(cfg.Canonical()), string(again.Canonical()))
	require.Contains(t, out, "global:\n  name: blue\n")
}

func TestAPathOfAPlatformReleaseWorksFromWhereTheFileIs(t *testing.T) {
	dir := kept(t)
	work := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(work, "mine"), os.DirFS(filepath.Join("..", "examples", "platform", "1.0.0"))))
	t.Chdir(work)
	code, _, errs := slipway("configure", "--set", "global.name=blue", "--set", "global.scale=50", "--set", "platform.release=./mine")
	require.Zero(t, code, errs)
	text, err := os.ReadFile(filepath.Join(dir, "deployments", "blue.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "release: "+filepath.Join(work, "mine")+"\n")
	code, _, errs = slipway("config", "explain", "--name", "blue")
	require.Zero(t, code, errs)

	code, _, errs = slipway("configure", "--set", "global.name=blue", "--set", "global.scale=50", "--set", "platform.release=./mine", "--out", "here.yaml")
	require.Zero(t, code, errs)
	text, err = os.ReadFile("here.yaml")
	require.NoError(t, err)
	require.Contains(t, string(text), "release: ./mine\n")
	t.Chdir(t.TempDir())
	code, out, errs := slipway("configure", "--file", filepath.Join(work, "here.yaml"), "--out", "-")
	require.Zero(t, code, errs)
	require.Contains(t, out, "release: "+filepath.Join(work, "mine")+"\n")
}

// onPlainTerminal runs slipway with these lines as input and a file as standard error.
func onPlainTerminal(t *testing.T, lines []string, args ...string) (code int, out, errs string) {
	t.Helper()
	screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	require.NoError(t, err)
	defer func() { require.NoError(t, screen.Close()) }()
	var b strings.Builder
	input := filepath.Join(t.TempDir(), "input")
	require.NoError(t, os.WriteFile(input, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	in, err := os.Open(input)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	code = Run(t.Context(), program(), args, in, &b, screen)
	text, err := os.ReadFile(screen.Name())
	require.NoError(t, err)
	return code, b.String(), string(text)
}

func TestTheAccessibleForm(t *testing.T) {
	dir := kept(t)
	t.Setenv("ACCESSIBLE", "1")
	answer := []string{"", "", "blue", "", "", "", "", "", "", "", "0", "0"}
	code, out, errs := onPlainTerminal(t, append(answer, "3"), "configure")
	require.Zero(t, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "Nothing was written.")
	require.Empty(t, anything(t, dir))

	scaled := slices.Clone(answer)
	scaled[5] = "2"
	code, out, errs = onPlainTerminal(t, append(scaled, "1"), "configure")
	require.Zero(t, code, errs)
	require.Contains(t, out, "slipway install --name blue")
	file := filepath.Join(dir, "deployments", "blue.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "scale: 100\n")

	// What is there is where it begins, and what changes is shown.
	code, _, errs = onPlainTerminal(t, []string{"", "", "", "", "3", "80", "", "", "", "0", "0", "2", "", "", "", "", "1", "", "", "", "", "0", "0", "1"}, "configure", "--name", "blue")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "What it changes in "+file)
	require.Contains(t, errs, "global.scale [100]: ")
	require.Contains(t, errs, "global.scale [500]: ", "changed answers are where the next round begins")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "scale: 50\n")
	require.Contains(t, string(text), "ports: [80]\n")

	// An answer that was given and is wrong is asked for, one that is right is not.
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_SCALE", "75")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_NAME", "red")
	code, _, errs = onPlainTerminal(t, []string{"", "", "", "", "1", "", "", "", "", "0", "0", "1"}, "configure", "--out", "-")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "global.scale [50]: ", "the first that can be accepted")
	require.NotContains(t, errs, "global.name [")
	require.Contains(t, errs, "The deployment (page 2 of 5)")
	require.Contains(t, errs, "aws (nothing can be installed there yet)\n")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_SCALE", "")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_NAME", "")

	// With answers on the command line nothing is asked.
	for answers, exit := range map[string]int{"global.name=red": 0, "global.nmae=x": 2} {
		code, _, errs = onPlainTerminal(t, nil, "configure", "--out", "-", "--set", "global.scale=50", "--set", answers)
		require.Equal(t, exit, code, errs)
		require.NotContains(t, errs, "What is installed")
	}

	// What the file says of others' does nothing to the terminal.
	sent := filepath.Join(t.TempDir(), "sent.yaml")
	require.NoError(t, os.WriteFile(sent, []byte("apiVersion: slipway.sh/v1\n# a\u202eb\nglobal:\n  domain: \"a\\e]0;b\\ab.example\"\n"), 0o600))
	code, out, errs = onPlainTerminal(t, []string{"", "", "red", "", "", "", "", "", "", "", "0", "0", "1"}, "configure", "--out", "-", "--file", sent)
	require.Zero(t, code, errs)
	require.Contains(t, out, "a\u202eb")
	require.Contains(t, errs, "# ab\n")
	require.Contains(t, errs, "global.domain [ab.example]: ")
	require.NotRegexp(t, "[\x1b\a\u202e]", errs)

	code, _, errs = onPlainTerminal(t, answer[:4], "configure")
	require.Equal(t, 7, code)
	require.Contains(t, errs, "RUN-001")
	require.Contains(t, errs, "nothing was written")
}
