package secrets

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

func TestASecretThatIsNotThereIsFoundOutBeforeARun(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SLIPWAY_TEST_TOKEN", "x")
	t.Setenv("SLIPWAY_TEST_EMPTY", "")
	t.Setenv(usage.EnvModule, "")
	file := filepath.Join(home, "token")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	empty := filepath.Join(home, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, there := range []string{"env:SLIPWAY_TEST_TOKEN", "file:" + file, "file:~/token"} {
		require.NoError(t, readable(config.SecretRef(there)), there)
	}
	for written, want := range map[string]string{"se=cret\n": "se=cret", "x\r\n": "x", "{\n}\n": "{\n}\n"} { // a line has no line break
		require.NoError(t, os.WriteFile(file, []byte(written), 0o600))
		token, err := here("file:~/token")
		require.NoError(t, err)
		require.Equal(t, want, string(token))
	}
	for ref, says := range map[string]string{
		"env:SLIPWAY_TEST_NONE":  "the environment variable SLIPWAY_TEST_NONE is not set",
		"env:SLIPWAY_TEST_EMPTY": "the environment variable SLIPWAY_TEST_EMPTY is not set or is empty",
		"file:~/empty":           empty + " is empty",
		"file:~/none":            "no such file",
		"file:" + home:           "is not a plain file",
	} {
		require.ErrorContains(t, readable(config.SecretRef(ref)), says)
	}

	for _, variable := range []string{"VAULT_ADDR", "OP_SERVICE_ACCOUNT_TOKEN"} {
		t.Setenv(variable, "")
	}
	t.Setenv("PATH", home)
	require.ErrorContains(t, readable("vault:infra/tls.key"), "VAULT_ADDR is not set")
	require.ErrorContains(t, readable("op:infra/tls/key"), "OP_SERVICE_ACCOUNT_TOKEN")
	t.Setenv("VAULT_ADDR", "http://127.0.0.1:1")
	t.Setenv("OP_SERVICE_ACCOUNT_TOKEN", "x")
	for _, there := range []string{"vault:infra/tls.key", "op:infra/tls/key", "cmd:pass show tls"} {
		require.NoError(t, readable(config.SecretRef(there)), there)
	}

	t.Setenv(usage.EnvModule, "1")
	require.ErrorContains(t, readable("env:SLIPWAY_TEST_TOKEN"), "dagger call hands over what is in --secrets, before the function")
	require.ErrorContains(t, readable("file:/x"), "before the function, as env:NAME in the configuration")
}

func TestASecretThatACommandPrints(t *testing.T) {
	value, err := output(t.Context(), `printf 'a\nb\n\n'`)
	require.NoError(t, err)
	require.Equal(t, "a\nb", value)
	_, err = output(t.Context(), "echo hunter2; echo locked >&2; exit 3")
	require.EqualError(t, err, "exit status 3: locked")
	_, err = output(t.Context(), "true")
	require.EqualError(t, err, "it printed nothing")

	cfg := &config.Config{TLS: config.TLS{Mode: config.UserCertificate, Key: "env:SLIPWAY_TEST_NO_KEY"}}
	_, err = TLSKey(t.Context(), cfg, &Finder{})
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-007"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "the environment variable SLIPWAY_TEST_NO_KEY is not set")
}

// TestACommandThatPrintsASecretRunsOnce, for hooks that want it at the same time, too.
func TestACommandThatPrintsASecretRunsOnce(t *testing.T) {
	t.Setenv(usage.EnvModule, "")
	log := filepath.Join(t.TempDir(), "log")
	engine := httptest.NewServer(http.NotFoundHandler()) // which a secret is not asked for until it is used
	defer engine.Close()
	_, port, _ := net.SplitHostPort(engine.Listener.Addr().String())
	t.Setenv("DAGGER_SESSION_PORT", port)
	t.Setenv("DAGGER_SESSION_TOKEN", "x")
	client, err := dagger.Connect(t.Context())
	require.NoError(t, err)
	f := &Finder{Client: client}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := f.Find(t.Context(), config.SecretRef("cmd:echo ran >>"+log+"; echo hunter2"))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "ran\n", string(text))
}

func TestPasswordsOfTheConfigurationAreFound(t *testing.T) {
	cfg := config.Default()
	cfg.SMTP.Password, cfg.Observability.Password = "env:SLIPWAY_TEST_NO_SMTP", "env:SLIPWAY_TEST_NO_METRICS"
	_, err := Passwords(t.Context(), cfg, &Finder{})
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-007"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "find smtp.password: the environment variable SLIPWAY_TEST_NO_SMTP is not set")
	require.ErrorContains(t, err, "find observability.password: the environment variable SLIPWAY_TEST_NO_METRICS is not set")

	none, err := Passwords(t.Context(), config.Default(), &Finder{})
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestSecretsInAFile(t *testing.T) {
	f := &Finder{Flags: Flags{SecretsFile: filepath.Join(t.TempDir(), "none")}}
	_, err := f.Find(t.Context(), "env:X")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-013"})
	f.SecretsFile = filepath.Join(t.TempDir(), "secrets.env")
	require.NoError(t, os.WriteFile(f.SecretsFile, []byte("SLIPWAY_TEST_X=handed\nSLIPWAY_TEST_EMPTY=\n"), 0o600))
	t.Setenv("SLIPWAY_TEST_X", "environment")
	value, ok, err := f.fromFile("SLIPWAY_TEST_X")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "handed", value)
	_, err = f.Find(t.Context(), "env:SLIPWAY_TEST_EMPTY")
	require.ErrorContains(t, err, "SLIPWAY_TEST_EMPTY is empty in the file of --secrets")
	_, err = f.Find(t.Context(), "env:SLIPWAY_TEST_NONE")
	require.ErrorContains(t, err, "the environment variable SLIPWAY_TEST_NONE is not set", "what is not in it is looked for in the environment")
}
