package preorchestrator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestAGivenPasswordIsUsed: in place of a generated one, also later, and copies follow it.
func TestAGivenPasswordIsUsed(t *testing.T) {
	want := []platform.Secret{
		{Name: "copy", Namespace: "web", Keys: []platform.SecretKey{{Key: "password", Generate: platform.CopyOf, From: "db/admin/password"}}},
		{Name: "admin", Namespace: "db", Keys: []platform.SecretKey{
			{Key: "password", Generate: platform.Password, Length: 32, Give: "adminPassword"}, {Key: "other", Generate: platform.Password, Length: 32},
		}},
	}
	c := fakeKube()
	ensure := func(given string) {
		s := &secrets{client: c, deployment: "demo", in: secretsInput(), have: map[string]*corev1.Secret{}, declared: want, given: map[string][]byte{}}
		if given != "" {
			s.given["adminPassword"] = []byte(given)
		}
		_, err := s.ensure(t.Context(), slices.Clone(want))
		require.NoError(t, err)
	}
	both := func(c *kube.Client) (string, string) {
		return string(data(t, c, "db", "admin")["password"]), string(data(t, c, "web", "copy")["password"])
	}
	ensure("")
	generated, copied := both(c)
	other := data(t, c, "db", "admin")["other"]
	require.Len(t, generated, 32)
	require.Equal(t, generated, copied)

	for _, given := range []string{"correct horse", "battery staple"} {
		ensure(given)
		is, copied := both(c)
		require.Equal(t, given, is)
		require.Equal(t, given, copied)
	}
	ensure("")
	is, copied := both(c)
	require.Equal(t, "battery staple", is, "what was given once stays")
	require.Equal(t, is, copied)
	require.Equal(t, other, data(t, c, "db", "admin")["other"])
}

// TestTheEndOfALineIsNoPartOfASecret: a file has one, what it is about has not.
func TestTheEndOfALineIsNoPartOfASecret(t *testing.T) {
	_, env := preparing(t, "")
	env.UserSecretsDir = t.TempDir()
	for written, want := range map[string]string{
		"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", " a b ": " a b ",
		"-----BEGIN\nabc\n-----END\n": "-----BEGIN\nabc\n-----END\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(env.UserSecretsDir, "a"), []byte(written), 0o600))
		got, err := userSecret(env, "a")
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}
