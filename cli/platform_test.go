package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
)

// TestPlatformInit: what it makes is valid, and a second call leaves it alone.
func TestPlatformInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	code, out, errs := slipway("platform", "init", dir)
	require.Zero(t, code, errs)
	require.Equal(t, dir+" is the platform release shop; "+dir+"/platform.yaml says what it installs\n\nNext:\n  slipway validate --platform "+dir+"\n  slipway install --platform "+dir+" --name shop\n", out)
	code, out, errs = slipway("validate", "--platform", dir)
	require.Zero(t, code, errs)
	require.Equal(t, "valid: deployment slipway on local, platform shop 0.1.0\n", out)

	code, _, errs = slipway("platform", "init", dir)
	require.Equal(t, 2, code)
	require.Contains(t, errs, dir+" holds charts; give a directory that does not exist or is empty")

	named := filepath.Join(t.TempDir(), "My Shop")
	code, out, errs = slipway("platform", "init", named, "--name", "other")
	require.Zero(t, code, errs)
	require.Contains(t, out, "slipway install --platform '"+named+"' --name other\n", "as a word of a shell")
	_, out, _ = slipway("platform", "init", filepath.Join(t.TempDir(), "a-name-that-is-too-long"))
	require.Contains(t, out, " --name my-platform\n", "the name of a deployment is shorter")
	text, err := os.ReadFile(filepath.Join(named, platform.File))
	require.NoError(t, err)
	require.Contains(t, string(text), "\nname: other\n")
}

func TestPlatformInitChecksTheName(t *testing.T) {
	parent := t.TempDir()
	for says, args := range map[string][]string{
		`the directory's name is "My Shop", want lower-case letters`:                      {filepath.Join(parent, "My Shop")},
		`--name is "Shop", want lower-case letters`:                                       {filepath.Join(parent, "a"), "--name", "Shop"},
		`--name is "kube-system", want a namespace that is neither Kubernetes' nor`:       {filepath.Join(parent, "a"), "--name", "kube-system"},
		`the directory's name is "default", want a namespace that is neither Kubernetes'`: {filepath.Join(parent, "default")},
		"give the directory of the new platform release":                                  {},
	} {
		code, _, errs := slipway(append([]string{"platform", "init"}, args...)...)
		require.Equal(t, 2, code, says)
		require.Contains(t, errs, says)
	}
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestPlatformInitThatCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, errs := slipway("platform", "init", filepath.Join(file, "shop"))
	require.Equal(t, 2, code)
	require.Contains(t, errs, "RUN-008")
}

// TestPlatformSchemaSaysWhatFieldsAreFor: it is the published one, of this program's
// version.
func TestPlatformSchemaSaysWhatFieldsAreFor(t *testing.T) {
	code, out, errs := slipway("platform", "schema")
	require.Zero(t, code, errs)
	var s struct {
		ID         string `json:"$id"`
		Properties map[string]struct{ Description string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, platform.SchemaID, s.ID)
	require.NotEmpty(t, s.Properties["components"].Description)
}
