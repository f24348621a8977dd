package step_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	canaryKey   = "-----BEGIN EC PRIVATE KEY-----\nMIIcanaryE0123456789abcdef\n-----END EC PRIVATE KEY-----\n"
	canaryGiven = "AGE-SECRET-KEY-1CANARYGIVEN0123456789"
	canaryMade  = "AGE-SECRET-KEY-1CANARYMADE9876543210"
)

// TestWhatAContainerHasInSecretIsHidden: the access to a cluster of Slipway's, the key of the
// deployment's secrets, and credentials of its bucket that are a file.
func TestWhatAContainerHasInSecretIsHidden(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(canaryKey))
	b := newBench(t)
	secrets := b.path("state", "secrets")
	require.NoError(t, os.MkdirAll(secrets, 0o700))
	for name, text := range map[string]string{
		filepath.Join(secrets, "kubeconfig"): "users: [{user: {client-key-data: " + encoded + "}}]\n",
		filepath.Join(secrets, "identity"):   canaryMade + "\n",
		b.path("google.json"):                `{"type":"service_account","private_key_id":"canaryid01","private_key":` + string(quoted(t, canaryKey)) + `,"client_email":"me@example.com"}`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", b.path("google.json"))
	text := strings.Join([]string{encoded, canaryKey, canaryMade, "canaryid01", "me@example.com"}, "\n")
	b.do = func(_ context.Context, env *step.Env) {
		env.Progress("%s", strings.ReplaceAll(text, "\n", " "))
		env.Logger.Info(text)
	}
	b.err = errors.New(text)
	code, res := b.run(contract.Request{Input: json.RawMessage(`{"text":"four"}`)})
	require.NotZero(t, code)
	all := b.shown.String() + b.log() + string(quoted(t, res))
	require.Contains(t, all, "me@example.com", "what is public stays")
	require.NotContains(t, strings.ToLower(all), "canary")
	require.NotContains(t, all, encoded)
}

// TestAnErrorDoesNothingToATerminal, and a secret in it that is cut by colours is found.
func TestAnErrorDoesNothingToATerminal(t *testing.T) {
	b := newBench(t)
	b.do = func(_ context.Context, env *step.Env) { env.Redact("canary-token-7fk2") }
	b.err = errors.New("helm: \x1b]52;c;cm0gLXJmIH4=\x07no chart for canary-\x1b[1mtoken\x1b[0m-7fk2\n\tline 2")
	_, res := b.run(contract.Request{Input: json.RawMessage(`{"text":"four"}`)})
	require.EqualError(t, res.Fault.Err, "helm: no chart for ***\n\tline 2")
	kept, err := os.ReadFile(b.path("state", "journal", "stage.measure", "000000000000.json"))
	require.NoError(t, err)
	require.NotContains(t, string(kept), "u001b")
}

// TestAccessThatComesWhileAStepRunsIsHidden as soon as the step says so.
func TestAccessThatComesWhileAStepRunsIsHidden(t *testing.T) {
	b := newBench(t)
	b.do = func(_ context.Context, env *step.Env) {
		require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
		require.NoError(t, os.WriteFile(env.Kubeconfig, []byte("users: [{user: {token: canary-token-7fk2}}]\n"), 0o600))
		require.NoError(t, env.RedactSecrets())
		env.Progress("the token is %s", "canary-token-7fk2")
	}
	code, _ := b.run(contract.Request{Input: json.RawMessage(`{"text":"four"}`)})
	require.Zero(t, code)
	require.Contains(t, b.log(), "the token is ***")
}

func TestAKeyThatIsGivenIsHiddenButForItsComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("# public key: age1public\n"+canaryGiven+"\n"), 0o600))
	env := step.NewEnv("r1", "stage/measure", step.Dirs{State: t.TempDir()}, &strings.Builder{}, &strings.Builder{})
	env.Backend.KeyFile = file
	require.NoError(t, env.RedactSecrets())
	require.Equal(t, "age1public and ***", env.Clean("age1public and "+canaryGiven))
	env.Backend.KeyFile = t.TempDir()
	require.Error(t, env.RedactSecrets(), "what cannot be read is not passed over")
}

func TestTheAccountOfTheRegistryIsHidden(t *testing.T) {
	env := step.NewEnv("r1", "stage/measure", step.Dirs{State: t.TempDir()}, &strings.Builder{}, &strings.Builder{})
	env.RegistryAuthFile = filepath.Join(t.TempDir(), "registry.json")
	none, err := env.RegistryAccount()
	require.NoError(t, err)
	require.Nil(t, none)
	text := `{"auths":{"r.example.com":{"username":"puller","password":"canary-r1ght","auth":"cHVsbGVyOmNhbmFyeS1yMWdodA=="}}}`
	require.NoError(t, os.WriteFile(env.RegistryAuthFile, []byte(text), 0o600))
	given, err := env.RegistryAccount()
	require.NoError(t, err)
	require.Equal(t, text, string(given))
	require.Equal(t, "puller, *** and ***", env.Clean("puller, canary-r1ght and cHVsbGVyOmNhbmFyeS1yMWdodA=="))
}

// quoted is a value as JSON.
func quoted(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}
