package deployment

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// bucketed is a configuration whose state is in a bucket.
func bucketed(url string) *config.Config {
	cfg := config.Default()
	cfg.State.URL = url
	return cfg
}

// fake finds secrets with a function.
type fake struct {
	secrets.Finder
	find func(config.SecretRef) (*dagger.Secret, error)
}

func (f *fake) Find(_ context.Context, ref config.SecretRef) (*dagger.Secret, error) {
	return f.find(ref)
}
func (f *fake) Set(name, value string) *dagger.Secret { return f.Finder.Set(name, value) }

// TestStateOf_missing: everything that is not there is reported at once.
func TestStateOf_missing(t *testing.T) {
	cfg := bucketed("s3://bucket?prefix=team")
	cfg.State.Key = "env:KEY"
	cfg.State.Credentials = map[string]config.SecretRef{"AWS_ACCESS_KEY_ID": "env:ID", "AWS_SECRET_ACCESS_KEY": "file:/nowhere"}
	from := &fake{find: func(ref config.SecretRef) (*dagger.Secret, error) {
		if ref == "env:ID" {
			return &dagger.Secret{}, nil
		}
		return nil, errors.New(string(ref) + " is not there")
	}}
	_, err := stateOf(t.Context(), cfg, from)
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeNoSecret})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "find state.credentials.AWS_SECRET_ACCESS_KEY: file:/nowhere is not there")
	require.ErrorContains(t, err, "find state.key: env:KEY is not there")

	t.Run("in the module", func(t *testing.T) {
		t.Setenv(module.Env, "1")
		from := &secrets.Finder{}
		_, err := stateOf(t.Context(), cfg, from)
		require.ErrorContains(t, err, "find state.credentials.AWS_ACCESS_KEY_ID: env:ID is on the machine that calls")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "before the function")
	})

	cfg.State.Key, cfg.State.Credentials = "", nil
	got, err := stateOf(t.Context(), cfg, from)
	require.NoError(t, err)
	require.Equal(t, "s3://bucket?prefix=team%2Fslipway", got.URL)
	require.Nil(t, got.Key)

	got, err = stateOf(t.Context(), bucketed(""), from)
	require.NoError(t, err)
	require.Empty(t, got)
}

// A file ends with the end of a line, which a variable must not have.
func TestOneLine(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for name, text := range map[string]string{"key": "se=cret\n", "json": "{\n}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	text, ok, err := oneLine("file:~/key")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "se=cret", text)
	for _, as := range []config.SecretRef{"env:HOME", config.SecretRef("file:" + filepath.Join(home, "json"))} {
		_, ok, err = oneLine(as)
		require.NoError(t, err)
		require.False(t, ok, "it goes to the engine as it is")
	}
	_, _, err = oneLine("file:/nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// asked is a Dagger engine that keeps what it is asked, and answers nothing.
type asked struct{ text string }

func (a *asked) Host() string { return "engine.invalid" }

func (a *asked) Close() error { return nil }

func (a *asked) Do(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	a.text += string(text)
	return nil, errors.Join(errors.New("nobody answers"), err)
}

func TestStateOf_credentialsInFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("verysecret\n"), 0o600))
	engine := &asked{}
	client, err := dagger.Connect(t.Context(), dagger.WithConn(engine))
	require.NoError(t, err)
	cfg := bucketed("s3://bucket")
	cfg.State.Credentials = map[string]config.SecretRef{"AWS_ACCESS_KEY_ID": "env:ID", "AWS_SECRET_ACCESS_KEY": config.SecretRef("file:" + file)}
	from := &fake{Finder: secrets.Finder{Client: client}, find: func(ref config.SecretRef) (*dagger.Secret, error) {
		return client.Secret(ref.URI()), nil
	}}
	got, err := stateOf(t.Context(), cfg, from)
	require.NoError(t, err)
	for _, secret := range got.Credentials {
		_, err := secret.Plaintext(t.Context())
		require.Error(t, err)
	}
	require.Contains(t, engine.text, `env://ID`)
	require.Contains(t, engine.text, `plaintext:\"verysecret\"`)
}
