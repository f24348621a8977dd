package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/daggercli"
)

// TestTheEngineInDocker is in the Docker that the docker command makes use of.
func TestTheEngineInDocker(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	at := func(env ...string) string {
		t.Helper()
		all := map[string]string{"DOCKER_CONFIG": dir}
		for i := 0; i < len(env); i += 2 {
			all[env[i]] = env[i+1]
		}
		for _, name := range []string{"HOME", "USERPROFILE", daggercli.EnvRunner, "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"} {
			t.Setenv(name, all[name])
		}
		return engineAddress()
	}
	require.Equal(t, " in ", at())
	write("config.json", `{"auths": {}, "currentContext": "default"}`)
	require.Equal(t, " in ", at())
	write("config.json", `{"auths": {}, "currentContext": "builder"}`)
	require.Equal(t, " in builder", at())
	write("contexts/meta/df6b07176a9b17cc4c9afc257bd404732e7d09b76436c7890f7b7be14e579794/meta.json", `{"Name": "builder", "Metadata": {}, "Endpoints": {"docker": {"Host": "ssh://builder-1", "SkipTLSVerify": false}}}`)
	require.Equal(t, " in ssh://builder-1", at())

	require.Equal(t, " in other", at("DOCKER_CONTEXT", "other"))
	require.Equal(t, " in unix:///d", at("DOCKER_CONTEXT", "other", "DOCKER_HOST", "unix:///d"))
	write(".docker/config.json", `{"currentContext": "mine"}`)
	require.Equal(t, " in mine", at("DOCKER_CONFIG", "", "HOME", dir, "USERPROFILE", dir))
	require.Equal(t, "docker-container://a in ssh://builder-1", at(daggercli.EnvRunner, "docker-container://a"))
	require.Equal(t, "unix:///a", at(daggercli.EnvRunner, "unix:///a"), "Docker has nothing to do with it")
	require.Equal(t, "container+podman://a", at(daggercli.EnvRunner, "container+podman://a"))
}
