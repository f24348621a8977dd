package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhereConfigureCannotWriteNothingIsLost(t *testing.T) {
	dir := kept(t)
	enough := []string{"--set", "global.name=blue", "--set", "global.scale=50"}
	code, _, errs := slipway(append([]string{"configure", "--out", filepath.Join(dir, "none", "x.yaml")}, enough...)...)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "give a file in a folder that exists")

	blocked := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	t.Setenv("SLIPWAY_CONFIG_DIR", filepath.Join(blocked, "slipway"))
	code, _, errs = slipway(append([]string{"configure"}, enough...)...)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "CFG-014")
	require.Contains(t, errs, "global:\n  name: blue\n", "what was made is shown")

	for _, name := range []string{"SLIPWAY_CONFIG_DIR", "HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	code, _, errs = slipway(append([]string{"configure"}, enough...)...)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "set HOME or SLIPWAY_CONFIG_DIR, or give --out FILE")
}

func TestConfigureWritesWhereALinkLeads(t *testing.T) {
	kept(t)
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.yaml"), filepath.Join(dir, "link.yaml")
	require.NoError(t, os.WriteFile(target, []byte("apiVersion: slipway.sh/v1\nglobal: {name: blue, scale: 50}\n"), 0o644))
	require.NoError(t, os.Symlink(target, link))
	t.Chdir(dir)
	code, _, errs := slipway("configure", "--file", "./target.yaml", "--out", "link.yaml", "--set", "global.scale=100")
	require.Zero(t, code, errs)
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Contains(t, string(text), "scale: 100")
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = os.Stat(target)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}

func TestTheFormTakesWhatAPlatformAsks(t *testing.T) {
	kept(t)
	dir := filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", "platform", "1.0.0"))))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "settings.schema.json"),
		[]byte(`{"type": "object", "required": ["banner"], "properties": {"banner": {"type": "string", "description": "What it says."}, "on": {"type": "boolean"}}}`), 0o600))
	yaml, err := os.ReadFile(filepath.Join(dir, "platform.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform.yaml"), append(yaml, "\nsettings: settings.schema.json\n"...), 0o600))
	args := []string{"configure", "--out", "-"}
	t.Setenv("SLIPWAY_CONFIG_PLATFORM_RELEASE", dir)
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_NAME", "blue")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_SCALE", "50")
	t.Setenv("ACCESSIBLE", "1")

	code, _, errs := slipway(args...)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "platform.settings.banner: got no answer, want What it says")
	code, out, errs := onPlainTerminal(t, []string{"", "", "", "", "", "", "", "0", "Hello", "", "0", "1"}, args...)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "platform.settings.banner: What it says.")
	require.Contains(t, out, "banner: Hello\n")

	t.Setenv("SLIPWAY_CONFIG_PLATFORM_SETTINGS_BANNER", "Hello")
	t.Setenv("SLIPWAY_CONFIG_PLATFORM_COMPONENTS_TOOLBOX_ENABLED", "true")
	code, want, errs := slipway(args...)
	require.Zero(t, code, errs)
	require.Contains(t, want, "banner: Hello\n")
	require.Regexp(t, `toolbox:\s+enabled: true`, want)
	code, out, errs = onPlainTerminal(t, []string{"", "", "", "", "", "", "", "0", "", "0", "1"}, args...)
	require.Zero(t, code, errs)
	require.NotContains(t, errs, "platform.settings.banner [")
	require.Equal(t, want, out, "with a form and without it is the same file")
}

func TestWhatIsRefusedAndMayBeASecretIsNotShownAgain(t *testing.T) {
	kept(t)
	t.Setenv("SLIPWAY_CONFIG_PROXY_HTTPS", "http://u:hunter22@p:1")
	t.Setenv("ACCESSIBLE", "1")
	mail := map[string]string{"HOST": "a.example", "USERNAME": "me", "PASSWORD": "hunter22"}
	for name, value := range mail {
		t.Setenv("SLIPWAY_CONFIG_SMTP_"+name, value)
	}
	_, _, shown := onPlainTerminal(t, nil, "configure", "--out", "-")
	require.NotContains(t, shown, "hunter22")
	t.Setenv("SLIPWAY_CONFIG_PROXY_HTTPS", "")
	for name := range mail {
		t.Setenv("SLIPWAY_CONFIG_SMTP_"+name, "")
	}
	file := configFile(t, "apiVersion: slipway.sh/v1\nglobal: {name: blue, scale: 50}\nsmtp: {host: a.example, from: a@b.example, username: me, password: hunter22}\n")
	code, _, errs := onPlainTerminal(t, []string{"", "", "", "", "", "", "", "", "", "", "0", "0", "", "", "", "", "", "env:X", "1"}, "configure", "--out", file)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "What it changes in")
	require.NotContains(t, errs, "hunter22", "neither as an answer nor in the difference")
	code, _, errs = slipway("configure", "--out", "-", "--set", "global.name=a", "--set", "global.scale=50", "--set", "onprem.kubeconfig=hunter22")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "onprem.kubeconfig: got an answer, want none, as the provider is local; or --set provider=onprem")
	require.NotContains(t, errs, "hunter22")
}

func TestVariablesOfAnotherDeploymentAreNoAnswers(t *testing.T) {
	kept(t)
	t.Setenv("SLIPWAY_DEPLOYMENT", "blue")
	t.Setenv("SLIPWAY_CONFIG_GLOBAL_SCALE", "100")
	code, out, errs := slipway("configure")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "deployment blue (chosen with SLIPWAY_DEPLOYMENT")
	require.Contains(t, out, "configuration of deployment blue is")
	code, _, errs = slipway("configure", "--name", "green")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "the variables of deployment blue (SLIPWAY_DEPLOYMENT) are no answers here")
	require.Contains(t, errs, "global.scale: got no answer")
	code, _, errs = slipway("configure", "--name", "green", "--answers", configFile(t, "global: {name: zed, scale: 50}"))
	require.Equal(t, 2, code)
	require.Contains(t, errs, `global.name: got "zed" in --answers, want green, as --name says`)
	code, _, _ = slipway("configure", "--name", "")
	require.Equal(t, 2, code)
}

func TestHooksOfAFileThatIsOnlyBegunWithDoNotRun(t *testing.T) {
	kept(t)
	file := configFile(t, "apiVersion: slipway.sh/v1\nglobal: {name: blue, scale: 50}\nhooks: [{name: theirs, before: workflow, workflows: [configure], script: \"exit 1\"}]\n")
	code, out, errs := slipway("configure", "--file", file, "--out", filepath.Join(t.TempDir(), "x.yaml"))
	require.Zero(t, code, errs)
	require.Contains(t, out, "configuration of deployment blue is")
	code, _, errs = slipway("configure", "--out", file, "--set", "global.scale=100")
	require.NotZero(t, code)
	require.Contains(t, errs, "BUN-", "those of the file itself do, and need the engine")
}
