package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestStepsWithTheBundlesTerraform: what the steps do with Terraform, in the tests of
// their package that need one. These were vetted where they ran without.
func TestStepsWithTheBundlesTerraform(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-v", "-run", "Terraform|Apply", "./stages/infrastructure")
	cmd.Dir = d.Root
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_TOOLS="+filepath.Join(d.Bundle, "bin"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, slipway.Tail(string(out)))
	require.Contains(t, string(out), "--- PASS: TestTerraformConvergesAndDestroys")
	require.NotContains(t, string(out), "--- SKIP")
}

// TestStepsOnANode: the tests of the steps' packages that need a Kubernetes, on an
// empty node, from the container in which steps run.
func TestStepsOnANode(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-steps")
	defer d.ok(t, "destroy")
	d.ok(t, "install", "--until", "infrastructure/cluster")
	programs := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", programs+"/", "./stages/internal/kube", "./stages/infrastructure", "./stages/component", "./stages/preorchestrator")
	build.Dir = d.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	r := d.ok(t, "toolchain",
		"with-directory", "--path", "/test/programs", "--source", programs,
		"with-file", "--path", "/test/bundle/bundle.json", "--source", filepath.Join(d.Bundle, "bundle.json"),
		"with-directory", "--path", "/test/bundle/manifests", "--source", filepath.Join(d.Bundle, "manifests"),
		"with-env-variable", "--name", "SLIPWAY_TEST_BUNDLE", "--value", "/test/bundle",
		"with-exec", "--args", list("sh", "-ceu", `export SLIPWAY_TEST_KUBECONFIG="$KUBECONFIG"
tests() { for program; do "/test/programs/$program.test" -test.run=^TestReal -test.v -test.failfast -test.parallel=12 >"/tmp/$program" 2>&1 || echo "--- FAIL: $program" >>"/tmp/$program"; done; }
tests kube preorchestrator & tests component infrastructure
wait
for program in component infrastructure kube preorchestrator; do echo "tests of $program"; cat "/tmp/$program"; done`),
		"stdout")
	for _, program := range []string{"component", "infrastructure", "kube", "preorchestrator"} {
		_, printed, found := strings.Cut(r.out, "tests of "+program+"\n")
		require.True(t, found, slipway.Tail(r.out))
		printed, _, _ = strings.Cut(printed, "tests of ")
		require.Contains(t, printed, "--- PASS: TestReal", program)
		t.Logf("%s:\n%s", program, strings.Join(regexp.MustCompile(`(?m)^--- .*$`).FindAllString(printed, -1), "\n"))
	}
	require.NotContains(t, r.out, "--- FAIL")
	require.NotContains(t, r.out, "--- SKIP")
}
