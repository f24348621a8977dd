package preorchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/config/platform"
)

// TestARotatedSecretChangesOnce: with the release that rotates it, and what copies it too;
// not again with that release or a later one.
func TestARotatedSecretChangesOnce(t *testing.T) {
	c := fakeKube()
	var line string
	install := func(rotated string, given map[string][]byte) (source, copied map[string][]byte) {
		t.Helper()
		want := wanted()
		want[1].Keys[1].Rotated, want[1].Keys[1].Give = rotated, "readerPassword"
		s := &secrets{client: c, deployment: "demo", in: secretsInput(), have: map[string]*corev1.Secret{}, given: given, declared: want}
		out, err := s.ensure(t.Context(), want)
		require.NoError(t, err)
		line = secretsLine(out)
		return data(t, c, "db", "reader"), data(t, c, "web", "reader")
	}
	first, _ := install("", nil)
	require.Equal(t, "2 secrets, 2 of them new", line)
	second, copied := install("1.1.0", nil)
	require.Equal(t, "2 secrets, 0 of them new, 2 changed", line)
	require.NotEqual(t, first["password"], second["password"])
	require.Equal(t, second["password"], copied["password"])
	require.Equal(t, first["token"], second["token"], "the others stay")
	require.Equal(t, first["username"], second["username"])
	again, copied := install("1.1.0", nil)
	require.Equal(t, "2 secrets, 0 of them new", line)
	require.Equal(t, second, again)
	require.Equal(t, second["password"], copied["password"])
	third, copied := install("2.0.0", nil)
	require.NotEqual(t, second["password"], third["password"])
	require.Equal(t, third["password"], copied["password"])

	given := map[string][]byte{"readerPassword": []byte("the user's own password")}
	own, copied := install("3.0.0", given)
	require.Equal(t, "the user's own password", string(own["password"]), "what the user gives is the user's to change")
	require.Equal(t, own["password"], copied["password"])
}

// TestAFreshSecretIsNotRotated: it has the newest value from the beginning.
func TestAFreshSecretIsNotRotated(t *testing.T) {
	c := fakeKube()
	want := []platform.Secret{{Name: "a", Namespace: "x", Keys: []platform.SecretKey{{Key: "p", Generate: platform.Password, Length: 32, Rotated: "1.1.0"}}}}
	for range 2 {
		_, _, err := ensureSecrets(t, c, want)
		require.NoError(t, err)
	}
	first := data(t, c, "x", "a")
	_, _, err := ensureSecrets(t, c, want)
	require.NoError(t, err)
	require.Equal(t, first, data(t, c, "x", "a"))
}
