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

	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
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
	secrets.Source
	find func(config.SecretRef) (*dagger.Secret, error)
}

func (f *fake) Find(_ context.Context, ref config.SecretRef) (*dagger.Secret, error) {
	return f.find(ref)
}

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
		t.Setenv(usage.EnvModule, "1")
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
	t.Setenv("ID", "someone")
	got, err := stateOf(t.Context(), cfg, &secrets.Finder{Client: client})
	require.NoError(t, err)
	for _, secret := range got.Credentials {
		_, err := secret.Plaintext(t.Context())
		require.Error(t, err)
	}
	require.Contains(t, engine.text, `plaintext:\"someone\"`)
	require.Contains(t, engine.text, `plaintext:\"verysecret\"`)
}
