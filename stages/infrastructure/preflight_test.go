package infrastructure

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestPreflightSaysWhatTheClusterRaises(t *testing.T) {
	in := contract.PreflightInput{Requirements: providers.Requirements{Raises: map[string]int64{"kernel.pid_max": 1 << 50, "vm.overcommit_memory": 0}}}
	var log strings.Builder
	out, err := preflight(t.Context(), newEnv(t, "/nowhere", &log), in)
	require.NoError(t, err)
	require.Len(t, out.Raises, 1)
	require.Regexp(t, `^kernel\.pid_max from \d+ to 1125899906842624$`, out.Raises[0])
	require.Contains(t, log.String(), "the cluster raises sysctls of the Dagger engine's machine, and nothing lowers them again: "+out.Raises[0])
}

func TestPreflightReportsEverythingAtOnce(t *testing.T) {
	_, err := preflight(t.Context(), newEnv(t, "/nowhere", os.Stderr), contract.PreflightInput{
		Requirements: providers.Requirements{MemoryBytes: 1 << 50, DiskBytes: 1 << 60, CPUs: 1 << 20},
	})
	require.ErrorIs(t, err, &fault.Fault{Code: CodePreflight})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "3 requirements are not met")
	for _, part := range []string{
		"memory is ", "free disk of the Dagger engine is ", "1048576 are needed",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestADeploymentThatIsThereNeedsAReserveOfDiskOnly(t *testing.T) {
	env := newEnv(t, "/nowhere", os.Stderr)
	in := contract.PreflightInput{Requirements: providers.Requirements{DiskBytes: 1 << 60}}
	look := func() error {
		_, err := preflight(t.Context(), env, in)
		_, verified := step.Unchanged(preflight)(t.Context(), env, in)
		require.Equal(t, err == nil, verified == nil, "both ask for the same")
		return err
	}
	require.ErrorContains(t, look(), "free disk of the Dagger engine is ")
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	require.NoError(t, os.WriteFile(env.Kubeconfig, nil, 0o600))
	require.NoError(t, look(), "installed, less free than required at first")
}

func TestRequirementsOfProviderLocal(t *testing.T) {
	r := local.Provider{}.Requirements(providers.Deployment{Scale: 50})
	good := contract.Preflight{MemoryBytes: 4<<30 - 100<<20, DiskBytes: 10 << 30, CPUs: 2}
	require.Empty(t, compareMachine(good, r), "a machine sold with 4 GiB has a little less")
	for what, bad := range map[string]contract.Preflight{
		"memory is 3.0 GiB, 4.0 GiB is needed":      {MemoryBytes: 3 << 30, DiskBytes: good.DiskBytes, CPUs: 2},
		"free disk of the Dagger engine is 9.0 GiB": {MemoryBytes: good.MemoryBytes, DiskBytes: 9 << 30, CPUs: 2},
		"there are 1 CPUs, 2 are needed":            {MemoryBytes: good.MemoryBytes, DiskBytes: good.DiskBytes, CPUs: 1},
	} {
		problems := compareMachine(bad, r)
		require.Len(t, problems, 1, what)
		require.Contains(t, problems[0].what, what)
		require.NotEmpty(t, problems[0].remedy)
	}
}

func TestAGreaterScaleNeedsAGreaterMachine(t *testing.T) {
	small := contract.Preflight{MemoryBytes: 4 << 30, DiskBytes: 10 << 30, CPUs: 2}
	for scale, want := range map[int]int{50: 0, 100: 2, 500: 3, 1000: 3} {
		problems := compareMachine(small, local.Provider{}.Requirements(providers.Deployment{Scale: scale}))
		require.Len(t, problems, want, scale)
	}
}

func TestObserveReadsTheLimitsOfTheContainer(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\n")
	write("proc/sys/fs/inotify/max_user_instances", "128\n")
	write("proc/sys/fs/inotify/max_user_watches", "1048576\n")
	raise := maps.Clone(local.Provider{}.Requirements(providers.Deployment{Scale: 50}).Raises)
	raise["fs.inotify.gone"] = 1
	m, err := observe(root, root, raise)
	require.NoError(t, err)
	require.Equal(t, int64(8<<30), m.MemoryBytes)
	require.Positive(t, m.DiskBytes)
	require.Equal(t, []string{"fs.inotify.max_user_instances from 128 to 8192"}, m.Raises)

	write("sys/fs/cgroup/memory.max", "2147483648\n")
	m, err = observe(root, root, nil)
	require.NoError(t, err)
	require.Equal(t, int64(2<<30), m.MemoryBytes)
	write("sys/fs/cgroup/memory.max", "max\n")
	m, err = observe(root, root, nil)
	require.NoError(t, err)
	require.Equal(t, int64(8<<30), m.MemoryBytes)

	write("proc/sys/fs/inotify/max_user_watches", "many\n")
	_, err = observe(root, root, raise)
	require.ErrorContains(t, err, "sysctl fs.inotify.max_user_watches")
	write("proc/meminfo", "MemFree: 1 kB\n")
	_, err = observe(root, root, nil)
	require.ErrorContains(t, err, "no MemTotal")
}

func TestPreflightJudgesAGivenCertificate(t *testing.T) {
	now := time.Now()
	ca, err := certificate.NewCA("given", now)
	require.NoError(t, err)
	leaf, err := certificate.NewLeaf(ca, []string{"*.example.org"}, now)
	require.NoError(t, err)
	other, err := certificate.NewLeaf(ca, []string{"*.example.org"}, now)
	require.NoError(t, err)
	env := newEnv(t, "/nowhere", os.Stderr)
	env.TLSKeyFile = filepath.Join(t.TempDir(), "tls.key")
	in := contract.PreflightInput{TLS: &contract.UserTLS{Certificate: string(leaf.Certificate), CA: string(ca.Certificate), Hosts: []string{"gitea.example.org"}}}
	look := func() error {
		_, err := preflight(t.Context(), env, in)
		_, verified := step.Unchanged(preflight)(t.Context(), env, in)
		require.Equal(t, err == nil, verified == nil, "an earlier result counts for nothing then")
		return err
	}
	require.ErrorContains(t, look(), "read the certificate's private key")
	require.NoError(t, os.WriteFile(env.TLSKeyFile, leaf.Key, 0o600))
	require.NoError(t, look())
	in.TLS.Hosts = []string{"gitea.example.net"}
	require.ErrorContains(t, look(), "the certificate is not for gitea.example.net")
	require.NoError(t, os.WriteFile(env.TLSKeyFile, other.Key, 0o600))
	err = look()
	require.ErrorIs(t, err, &fault.Fault{Code: CodePreflight})
	require.ErrorContains(t, err, "the private key does not belong to the certificate")
	require.ErrorContains(t, err, certificate.FixInvalid)
}
