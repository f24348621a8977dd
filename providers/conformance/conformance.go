// Package conformance is the test suite for all providers: it checks the contract that
// the conductor and the Terraform step rely on.
package conformance

import (
	"encoding/json"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/providers"
)

// Suite is a provider under test.
type Suite struct {
	Provider providers.Provider
	Valid    []string // sections, as JSON, that are accepted; list {} here or in Invalid
	Invalid  []string // sections that are refused
}

var (
	nameRE     = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	outputRE   = regexp.MustCompile(`(?m)^output "([^"]+)" \{`)
	variableRE = regexp.MustCompile(`(?m)^variable "([^"]+)" \{`)
	versionRE  = regexp.MustCompile(`(?m)^\s*required_version\s*=\s*"([^"]+)"`)
	backendRE  = regexp.MustCompile(`(?m)^\s*backend "([^"]+)" \{`)
)

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Run("name", func(t *testing.T) {
		require.Regexp(t, nameRE, s.Provider.Name())
	})
	t.Run("sections", func(t *testing.T) {
		require.NotEmpty(t, s.Valid)
		require.NotEmpty(t, s.Invalid)
		for _, section := range s.Valid {
			require.Empty(t, s.Provider.Validate(json.RawMessage(section)), section)
		}
		for _, section := range s.Invalid {
			problems := s.Provider.Validate(json.RawMessage(section))
			require.NotEmpty(t, problems, section)
			for _, p := range problems {
				require.NotEmpty(t, p.Field, "%s: a problem names its field", section)
				require.NotEmpty(t, p.Want, "%s: a problem says what is expected", section)
			}
		}
		for _, p := range s.Provider.Validate(json.RawMessage(`{"no such setting": 1}`)) {
			require.NotEmpty(t, p.Field)
			return
		}
		t.Error("an unknown setting is accepted")
	})
	for _, section := range s.Valid {
		t.Run("terraform "+section, func(t *testing.T) {
			d := providers.Deployment{Name: "suite", Scale: 50, Section: json.RawMessage(section)}
			root, err := s.Provider.Terraform(d)
			require.NoError(t, err)
			checkRoot(t, root)
			again, err := s.Provider.Terraform(d)
			require.NoError(t, err)
			require.Equal(t, root.Vars, again.Vars, "the same deployment has the same variables")
		})
	}
	for _, section := range s.Valid {
		t.Run("cluster "+section, func(t *testing.T) {
			c, err := s.Provider.Cluster(providers.Deployment{Name: "suite", Scale: 50, Section: json.RawMessage(section)})
			require.NoError(t, err)
			checkCluster(t, c)
		})
	}
}

func checkCluster(t *testing.T, c providers.Cluster) {
	t.Helper()
	require.GreaterOrEqual(t, c.Requirements.MemoryBytes, int64(0))
	require.GreaterOrEqual(t, c.Requirements.DiskBytes, int64(0))
	require.GreaterOrEqual(t, c.Requirements.CPUs, 0)
	if c.Addons != nil {
		require.NotEmpty(t, c.Addons.Manifests)
		image := func(name string) string { return "example.org/" + name }
		for name, text := range c.Addons.Manifests {
			manifest, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"image": image}).Parse(text)
			require.NoError(t, err)
			require.NoError(t, manifest.Execute(io.Discard, c.Addons.Values))
		}
	}
	if c.External != nil {
		require.Nil(t, c.Local, "an existing cluster is not a service of Slipway")
		require.True(t, c.External.Kubeconfig.Valid(), "the reference to the kubeconfig")
	}
	if c.Local == nil {
		return
	}
	require.True(t, c.Local.APIPort > 0 && c.Local.APIPort < 65536, "%d is a TCP port", c.Local.APIPort)
	for i, port := range c.Local.Ports {
		require.True(t, port > 0 && port < 65536, "%d is a TCP port", port)
		require.NotContains(t, []int{6443, 6444, c.Local.APIPort}, port, "the API's and the node's own")
		require.NotContains(t, c.Local.Ports[:i], port, "a port is named once")
	}
}

// checkRoot reads the root as text, which suffices for the canonical format of terraform
// fmt.
func checkRoot(t *testing.T, root providers.Root) {
	names, err := fs.Glob(root.Files, "*.tf")
	require.NoError(t, err)
	require.NotEmpty(t, names, "*.tf are at the top")
	var text []byte
	for _, name := range names {
		b, err := bounded.FS(root.Files, name, bounded.Generated)
		require.NoError(t, err)
		text = append(append(text, b...), '\n')
	}
	require.ElementsMatch(t, providers.Outputs(), found(outputRE, text), "the outputs are the same for all providers")
	require.Len(t, found(versionRE, text), 1, "required_version is pinned once")
	require.Len(t, found(backendRE, text), 1, "one backend is declared; its settings come from the step")

	b, err := json.Marshal(root.Vars)
	require.NoError(t, err, "variables cross to the step as JSON")
	var vars map[string]any
	require.NoError(t, json.Unmarshal(b, &vars))
	declared := found(variableRE, text)
	for name := range vars {
		require.True(t, slices.Contains(declared, name), "variable %s is declared", name)
	}
}

func found(re *regexp.Regexp, text []byte) []string {
	var out []string
	for _, m := range re.FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}
