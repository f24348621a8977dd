package stages_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsLinked: what runs in a step's container links no Dagger, and what drives it
// links none of the libraries that the steps work with, by whatever way.
func TestWhatIsLinked(t *testing.T) {
	const module = "github.com/slipway-sh/slipway/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}{{range .Deps}} {{.}}{{end}}",
		"./...", "../providers/...", "../containers/...", "../config/...", "../pipeline/...").Output()
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		name := strings.TrimPrefix(deps[0], module)
		var not []string
		switch {
		case name == "stages/incontainer": // `slipway dry-run` wires the graph and runs step code
			not = []string{module + "stages/conductor"}
		case name == "config/kubeconfig": // of client-go's types; only what talks to a cluster reads one
			continue
		case strings.HasPrefix(name, "containers/trust/sigstore"): // sigstore's libraries log with Kubernetes'; who links them says so
			continue
		case name == "stages/conductor", strings.HasPrefix(name, "containers"):
			not = []string{"k8s.io/", "helm.sh/", "github.com/hashicorp/terraform-exec/"}
		case name == "stages/contract", !strings.HasPrefix(name, "stages/"): // both sides have these
			not = []string{"k8s.io/", "helm.sh/", "github.com/hashicorp/terraform-exec/", "dagger.io/", module + "containers", module + "stages/conductor"}
		default:
			not = []string{"dagger.io/", module + "containers", module + "stages/conductor"}
		}
		seen++
		for _, dep := range deps[1:] {
			for _, prefix := range not {
				require.False(t, strings.HasPrefix(dep, prefix), "%s links %s", name, dep)
			}
			step := strings.HasPrefix(name, "stages/") && name != "stages/conductor" && name != "stages/incontainer"
			require.False(t, step && dep == module+"stages", "%s links the wiring", name)
			require.False(t, strings.HasPrefix(name, "providers") && strings.HasPrefix(dep, module+"stages"), "%s links %s", name, dep)
		}
	}
	require.Greater(t, seen, 30)
}
