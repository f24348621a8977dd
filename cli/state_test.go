package cli

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// bucketed is a target with a configuration whose state is in a bucket.
func bucketed(text string) *target {
	cfg := config.Default()
	cfg.State.URL = text
	return &target{cfg: cfg}
}

func TestGivenCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "aws.env")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	x := bucketed("s3://bucket")
	got, err := x.givenCredentials()
	require.NoError(t, err)
	require.Nil(t, got)

	x.stateCredentials = file
	_, err = x.givenCredentials()
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoStateSecret})
	write("# of the tests\n\nAWS_ACCESS_KEY_ID=id\nAWS_SECRET_ACCESS_KEY=se=cret \n")
	got, err = x.givenCredentials()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "se=cret"}, got)
	for _, bad := range []string{"hunter2", "PATH=hunter2", "hunter2=x"} {
		write("AWS_ACCESS_KEY_ID=id\n" + bad)
		_, err = x.givenCredentials()
		require.ErrorIs(t, err, &fault.Fault{Code: codeNoStateSecret})
		require.ErrorContains(t, err, "line 2 is not NAME=value")
		require.NotContains(t, err.Error(), "hunter2")
	}
	x = bucketed("")
	x.stateCredentials = file
	_, err = x.givenCredentials()
	require.ErrorAs(t, err, new(errUsage))
}

// TestStateOf_missing: everything that is not there is reported at once.
func TestStateOf_missing(t *testing.T) {
	x := bucketed("s3://bucket?prefix=team")
	x.cfg.State.Key = "env:KEY"
	x.cfg.State.Credentials = map[string]config.SecretRef{"AWS_ACCESS_KEY_ID": "env:ID", "AWS_SECRET_ACCESS_KEY": "file:/nowhere"}
	opts := conductor.Options{Config: x.cfg, Secret: func(ref config.SecretRef) (*dagger.Secret, error) {
		if ref == "env:ID" {
			return &dagger.Secret{}, nil
		}
		return nil, errors.New(string(ref) + " is not there")
	}}
	_, err := x.stateOf(opts, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoStateSecret})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "find state.credentials.AWS_SECRET_ACCESS_KEY: file:/nowhere is not there")
	require.ErrorContains(t, err, "find state.key: env:KEY is not there")

	t.Run("in the module", func(t *testing.T) {
		t.Setenv(moduleEnv, "1")
		opts := opts
		opts.Secret = func(ref config.SecretRef) (*dagger.Secret, error) { return x.secret(t.Context(), nil, ref) }
		_, err := x.stateOf(opts, nil)
		require.ErrorContains(t, err, "find state.credentials.AWS_ACCESS_KEY_ID: env:ID is on the machine that calls")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "--secrets (dagger call: before the function)")
	})

	x.cfg.State.Key, x.cfg.State.Credentials, x.stateKey = "", nil, filepath.Join(t.TempDir(), "none")
	_, err = x.stateOf(opts, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoStateSecret})
	x.stateKey = ""
	got, err := x.stateOf(opts, nil)
	require.NoError(t, err)
	require.Equal(t, "s3://bucket?prefix=team%2Fslipway", got.URL)
	require.Nil(t, got.Key)

	x = bucketed("")
	x.stateKey, opts.Config = "key", x.cfg
	_, err = x.stateOf(opts, nil)
	require.ErrorAs(t, err, new(errUsage))
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
	x := bucketed("s3://bucket")
	x.cfg.State.Credentials = map[string]config.SecretRef{"AWS_ACCESS_KEY_ID": "env:ID", "AWS_SECRET_ACCESS_KEY": config.SecretRef("file:" + file)}
	opts := conductor.Options{Client: client, Config: x.cfg, Secret: func(ref config.SecretRef) (*dagger.Secret, error) {
		return client.Secret(ref.URI()), nil
	}}
	got, err := x.stateOf(opts, nil)
	require.NoError(t, err)
	for _, secret := range got.Credentials {
		_, err := secret.Plaintext(t.Context())
		require.Error(t, err)
	}
	require.Contains(t, engine.text, `env://ID`)
	require.Contains(t, engine.text, `plaintext:\"verysecret\"`)
}

// TestStateFlags: a bucket that cannot be is refused before anything starts, and a
// URL is not shown.
func TestStateFlags(t *testing.T) {
	code, _, errs := slipway("status", "--state", "s3://me:hunter2@bucket")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-001")
	require.Contains(t, errs, "state.url: got something else, want a bucket's URL, azblob://, gs://, s3://bucket (credentials do not belong into it")
	require.NotContains(t, errs, "hunter2")
}

// TestState_unreachable: a store that does not answer is a fault of class preflight
// before the lock is taken, which the conductor is told.
func TestState_unreachable(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "c4nary")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv(contract.StateURLVariable, "s3://bucket?region=x&use_path_style=true&endpoint=http://127.0.0.1:1&prefix=blue")
	code, _, errs := slipway("state", "--root", t.TempDir(), "hold", "--run", "r1")
	require.Equal(t, int(fault.Preflight), code, errs)
	require.Contains(t, errs, string(store.CodeUnreachable))
	require.Contains(t, errs, `slipway-fault: {`)
	require.NotContains(t, errs, "c4nary")
}
