package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDockerSecrets(t *testing.T) {
	var found []string
	add := func(s string) { found = append(found, s) }
	DockerSecrets([]byte(`{"auths":{"r.example.com":{"username":"puller","password":"r1ght","auth":"cHVsbGVyOnIxZ2h0","identitytoken":"renewed","registrytoken":"as it is"}},"credsStore":"x"}`), add)
	require.Equal(t, []string{"r1ght", "cHVsbGVyOnIxZ2h0", "renewed", "as it is"}, found)
	found = nil
	DockerSecrets([]byte("no JSON"), add)
	require.Empty(t, found)
}
