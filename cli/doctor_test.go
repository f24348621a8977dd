package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestADoctorReportsAllProblems: a configuration that is not valid, no bundle, and an engine that
// does not answer.
func TestADoctorReportsAllProblems(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
	t.Setenv(daggercli.EnvSession, "1") // nothing listens there
	t.Setenv(daggercli.EnvToken, "x")
	keptDeployments(t, "")
	file := configFile(t, "apiVersion: slipway.sh/v1\nglobal: {scale: 51}\n")
	code, out, errs := slipway("doctor", "--config", file, "--output", "json")
	require.Equal(t, 3, code, errs)
	var found diagnosis
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Len(t, found.Problems, 3, errs)
	require.Equal(t, "CFG-001", string(found.Problems[0].Code))
	require.Equal(t, "BUN-006", string(found.Problems[1].Code))
	require.Contains(t, found.Problems[2].Error, "ask the engine for its version")
	for _, p := range found.Problems {
		require.Contains(t, errs, p.Error)
	}
	require.Empty(t, found.Configuration+found.Engine+found.Images)
}

func TestWhatADoctorHasFound(t *testing.T) {
	d := diagnosis{
		Configuration: "deployment shop on local", Images: "sha256:1", Engine: "v0.20.8",
		Checkup: conductor.Checkup{
			Machine: &contract.Preflight{MemoryBytes: 4 << 30, DiskBytes: 21 << 29, CPUs: 2, Kernel: "6.1.0", Raises: []string{"a.b from 1 to 2"}},
			Cluster: &contract.ClusterPreflight{APIEndpoint: "https://a:6443", Version: "v1.37.2", StorageClass: "standard"},
		},
	}
	var out strings.Builder
	require.NoError(t, d.text(&out))
	require.Equal(t, `configuration  deployment shop on local
images         sha256:1
engine         v0.20.8
machine        4.0 GiB memory, 10.5 GiB free disk, 2 CPUs, kernel 6.1.0
sysctl         an install raises a.b from 1 to 2
cluster        Kubernetes v1.37.2 at https://a:6443, storage class standard
no problems
`, out.String())

	out.Reset()
	d = diagnosis{Engine: "v0.20.8", Problems: make([]problem, 2)}
	require.NoError(t, d.text(&out))
	require.Equal(t, "engine  v0.20.8\nproblems: 2\n", out.String())
}
