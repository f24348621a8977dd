package cisystems

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const onKubernetes = root + "/examples/ci/kubernetes/"

// enginePods is what an API server answers: two engines, one that is not ready, and one that
// has not begun.
const enginePods = `{"items": [
{"status": {"podIP": "10.0.0.7", "containerStatuses": [{"ready": true}]}},
{"status": {"podIP": "10.0.0.8", "containerStatuses": [{"ready": false}]}},
{"status": {"podIP": "10.0.0.9", "containerStatuses": [{"ready": true}]}},
{"status": {"phase": "Pending"}}]}`

func TestTheMatrixOnEnginePods(t *testing.T) {
	script, err := filepath.Abs(onKubernetes + "matrix.sh")
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(kubectl string) (string, int) {
		for name, text := range map[string]string{"kubectl": kubectl, "slipway": `echo "$@"`} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
		}
		cmd := exec.CommandContext(t.Context(), script, "--from", "1.0.0", "--to", "2.0.0")
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, _ := cmd.CombinedOutput() // the exit code says it
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := run("cat <<'X'\n" + enginePods + "\nX")
	require.Zero(t, code, out)
	require.Equal(t, "upgrade-matrix --engine tcp://10.0.0.7:1234,tcp://10.0.0.9:1234 --parallel 2 --from 1.0.0 --to 2.0.0\n", out)
	out, code = run(`echo '{"items": []}'`)
	require.Equal(t, 3, code)
	require.Equal(t, "no engine in namespace dagger is ready\n", out)
	_, code = run("exit 5")
	require.Equal(t, 5, code)
}

// strictly reads a file of examples/ci/kubernetes that has no other keys than into.
func strictly(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(onKubernetes + file)
	require.NoError(t, err)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	require.NoError(t, d.Decode(into))
}

func TestTheEnginePods(t *testing.T) {
	var values struct { // as the chart's values.yaml has them
		Engine struct {
			Kind         string
			NodeSelector map[string]string `yaml:"nodeSelector"`
			Port         int
			Args         []string
		}
	}
	strictly(t, "engines.yaml", &values)
	require.Equal(t, 1234, values.Engine.Port)
	require.Equal(t, []string{"--allow-insecure-entitlement", "security.insecure"}, values.Engine.Args)

	type selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	var guard struct { // a NetworkPolicy of networking.k8s.io/v1
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Spec       struct {
			PodSelector selector `yaml:"podSelector"`
			PolicyTypes []string `yaml:"policyTypes"`
			Ingress     []struct {
				From []struct {
					NamespaceSelector selector `yaml:"namespaceSelector"`
					PodSelector       selector `yaml:"podSelector"`
				}
				Ports []struct{ Port int }
			}
		}
	}
	strictly(t, "guard.yaml", &guard)
	require.Equal(t, map[string]string{"app.kubernetes.io/instance": "dagger"}, guard.Spec.PodSelector.MatchLabels)
	require.Len(t, guard.Spec.Ingress, 1)
	require.Len(t, guard.Spec.Ingress[0].From, 1, "both selectors are of one peer")
	require.Equal(t, values.Engine.Port, guard.Spec.Ingress[0].Ports[0].Port)
}
