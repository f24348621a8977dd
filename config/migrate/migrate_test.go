package migrate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the golden files")

// TestApply migrates each file of testdata. The result and the reported changes are in the files of
// the current version.
func TestApply(t *testing.T) {
	files, err := filepath.Glob("testdata/*.v1alpha1.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, from := range files {
		name := strings.TrimSuffix(from, ".v1alpha1.yaml") + ".v1"
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(from)
			require.NoError(t, err)
			root := decode(t, text)
			require.Equal(t, V1Alpha1, Version(root.Content[0]))
			changes := Apply(root.Content[0], V1Alpha1)
			golden(t, name+".yaml", encode(t, root))
			golden(t, name+".changes", format(changes))
			require.Empty(t, Apply(root.Content[0], Current), "once is enough")
		})
	}
}

func format(changes []Change) []byte {
	var b bytes.Buffer
	for _, c := range changes {
		b.WriteString(c.String() + "\n")
	}
	return b.Bytes()
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), file)
}

func decode(t *testing.T, text []byte) *yaml.Node {
	t.Helper()
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &n))
	return &n
}

func encode(t *testing.T, n *yaml.Node) []byte {
	t.Helper()
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	require.NoError(t, e.Encode(n))
	require.NoError(t, e.Close())
	return b.Bytes()
}

func TestVersionOfAFile(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1":                "slipway.sh/v1alpha1",
		"version: 2":                "",
		"version: '1'":              "",
		"name: x":                   "",
		"apiVersion: slipway.sh/v1": "slipway.sh/v1",
		"apiVersion: slipway.sh/v9": "slipway.sh/v9",
	} {
		require.Equal(t, want, Version(decode(t, []byte(text)).Content[0]), text)
	}
	require.Empty(t, Version(nil))
}

// A migration never adds a field that is not in the file.
func TestApplyKeepsWhatIsThere(t *testing.T) {
	for _, text := range []string{
		"version: 1\nglobal: 7\nname: a", "version: 1\nscale: [small]", "version: 1\nname: {a: b}\nglobal:",
		"version: 1\nadminEmail: a\nglobal: {admin: b}", "apiVersion: slipway.sh/v1alpha1\nadvanced: []\ntimeouts: {}",
		"version: 1\nglobal: {admin: {email: b}}\nadminEmail: a",
	} {
		n := decode(t, []byte(text))
		before := scalars(n)
		Apply(n.Content[0], Version(n.Content[0]))
		after := scalars(n)
		require.GreaterOrEqual(t, after, before-1, "%s\n%s", text, encode(t, n)) // version: 1 is one field, as apiVersion is
	}
}

func scalars(n *yaml.Node) int {
	count := 0
	if n.Kind == yaml.ScalarNode {
		count = 1
	}
	for _, c := range n.Content {
		count += scalars(c)
	}
	return count
}
