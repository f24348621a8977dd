package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/daggercli"
)

// given is the engine at hand with these variables, on a machine whose id is in a file.
func given(t *testing.T, machineFile string, env map[string]string) Location {
	t.Helper()
	for _, name := range []string{"HOME", "USERPROFILE", daggercli.EnvRunner, "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"} {
		t.Setenv(name, env[name])
	}
	return atHand(machineFile)
}

// machine is a file that identifies a machine.
func machine(t *testing.T, id string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "machine-id")
	require.NoError(t, os.WriteFile(file, []byte(id+"\n"), 0o600))
	return file
}

// TestAMachinesEngine is another one than that of the same address on another machine.
func TestAMachinesEngine(t *testing.T) {
	file := machine(t, "111")
	for _, address := range []string{"", "unix:///run/a.sock", "tcp://localhost:1234", "tcp://[::1]:1234", "docker-container://a", "container+podman://a"} {
		env := map[string]string{daggercli.EnvRunner: address, "DOCKER_CONFIG": t.TempDir()}
		here, there := given(t, file, env), given(t, machine(t, "222"), env)
		require.True(t, here.Is(given(t, file, env)), address)
		require.True(t, here.Is(there), "it was installed anew")
		there.Host = "desk"
		require.False(t, here.Is(there), address)
		require.True(t, here.Is(given(t, "none", env)), "nothing is known of that machine")
		renamed := here
		renamed.Host = "dhcp-17"
		require.True(t, here.Is(renamed))
		require.Contains(t, there.String(), " of machine desk")
		require.NotContains(t, here.Machine, "111")
	}
	for _, address := range []string{"tcp://builder:1234", "ssh://me@builder", "kube-pod://a?context=b"} {
		require.Equal(t, Location{Address: address}, given(t, file, map[string]string{daggercli.EnvRunner: address}))
	}
	require.Equal(t, "unix:///a", Location{Address: "unix:///a"}.String())
	require.False(t, Location{Address: "unix:///a"}.Is(Location{Address: "unix:///b"}))
}

// TestAnotherImage of an engine has the same volume, and so the same deployments.
func TestAnotherImage(t *testing.T) {
	const rest = "?cleanup=false&container=slipway-engine&volume=slipway-engine"
	at := func(address string) Location {
		return given(t, "none", map[string]string{daggercli.EnvRunner: address, "DOCKER_CONFIG": t.TempDir()})
	}
	old := at("docker-image://registry.example/engine:1" + rest)
	require.Equal(t, "the engine of the volume slipway-engine in Docker", old.Address)
	require.True(t, old.Is(at("docker-image://registry.example/engine:2"+rest)))
	require.False(t, old.Is(at("docker-image://registry.example/engine:1")))
}

// TestTheEngineInDocker is in the Docker that the docker command makes use of.
func TestTheEngineInDocker(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	at := func(env ...string) Location {
		t.Helper()
		all := map[string]string{"DOCKER_CONFIG": dir}
		for i := 0; i < len(env); i += 2 {
			all[env[i]] = env[i+1]
		}
		return given(t, machine(t, "111"), all)
	}
	const plain = "the engine that the dagger CLI starts in Docker"
	require.Equal(t, plain, at().Address)
	write("config.json", `{"auths": {}, "currentContext": "default"}`)
	require.Equal(t, plain, at().Address)
	write("config.json", `{"auths": {}, "currentContext": "builder"}`)
	require.Equal(t, plain+" (builder)", at().Address)
	write("contexts/meta/df6b07176a9b17cc4c9afc257bd404732e7d09b76436c7890f7b7be14e579794/meta.json", `{"Name": "builder", "Metadata": {}, "Endpoints": {"docker": {"Host": "ssh://builder-1", "SkipTLSVerify": false}}}`)
	require.Equal(t, Location{Address: plain + " (ssh://builder-1)"}, at(), "which is the same one from every machine")

	require.Equal(t, plain+" (other)", at("DOCKER_CONTEXT", "other").Address)
	require.Equal(t, plain+" (unix:///d)", at("DOCKER_CONTEXT", "other", "DOCKER_HOST", "unix:///d").Address)
	require.NotEmpty(t, at("DOCKER_HOST", "unix:///d").Machine)
	write(".docker/config.json", `{"currentContext": "mine"}`)
	require.Equal(t, plain+" (mine)", at("DOCKER_CONFIG", "", "HOME", dir, "USERPROFILE", dir).Address)
	require.Equal(t, "docker-container://a (ssh://builder-1)", at(daggercli.EnvRunner, "docker-container://a").Address)
	require.Equal(t, "unix:///a", at(daggercli.EnvRunner, "unix:///a").Address, "Docker has nothing to do with it")
	require.Equal(t, "container+podman://a", at(daggercli.EnvRunner, "container+podman://a").Address)
}
