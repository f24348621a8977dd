package infrastructure

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestBackendFollowsTheStore(t *testing.T) {
	for url, c := range map[string]struct {
		variables map[string]string
		want      backend
	}{
		"": {nil, backend{}},
		"s3://b?region=eu-central-1&prefix=team/blue": {nil, backend{"s3", map[string]any{
			"bucket": "b", "key": "team/blue/terraform/terraform.tfstate", "use_lockfile": true, "region": "eu-central-1",
		}, stateKey}},
		"s3://b?endpoint=http://127.0.0.1:9000&use_path_style=true&ssetype=aws:kms&kmskeyid=k&role=arn:r&prefix=x": {nil, backend{"s3", map[string]any{
			"bucket": "b", "key": "x/terraform/terraform.tfstate", "use_lockfile": true, "use_path_style": true,
			"encrypt": true, "kms_key_id": "k", "assume_role": map[string]any{"role_arn": "arn:r"},
			"endpoints":                   map[string]any{"s3": "http://127.0.0.1:9000"},
			"skip_credentials_validation": true, "skip_requesting_account_id": true,
			"skip_metadata_api_check": true, "skip_region_validation": true,
		}, stateKey}},
		"azblob://c?storage_account=a&prefix=blue": {nil, backend{"azurerm", map[string]any{
			"storage_account_name": "a", "container_name": "c", "key": "blue/terraform/terraform.tfstate", "use_azuread_auth": true,
		}, stateKey}},
		"azblob://c?prefix=blue": {map[string]string{"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": "c4nary"}, backend{"azurerm", map[string]any{
			"storage_account_name": "a", "container_name": "c", "key": "blue/terraform/terraform.tfstate",
		}, stateKey}},
		"gs://b?prefix=blue": {nil, backend{"gcs", map[string]any{"bucket": "b", "prefix": "blue/terraform"}, "terraform/default.tfstate"}},
	} {
		got, err := backendOf(state.Place{URL: url}, func(name string) string { return c.variables[name] })
		require.NoError(t, err, url)
		require.Equal(t, c.want, got, url)
	}
	for _, url := range []string{"azblob://c?domain=elsewhere.example.com", "mem://"} {
		_, err := backendOf(state.Place{URL: url}, func(string) string { return "" })
		require.Error(t, err, url)
		env := newEnv(t, "/nowhere", io.Discard)
		env.Place.URL = url
		_, err = toolchain{}.terraform(t.Context(), env, contract.TerraformInput{})
		f, _ := errors.AsType[*fault.Fault](err)
		require.Equal(t, CodeInit, f.Code, url)
		require.Equal(t, fault.Usage, f.Class)
		require.Contains(t, f.Fix, "state.url", "and not terraform.tfstate, which is well")
	}
}

func TestBackendBlock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, backend{}.write(dir))
	require.NoFileExists(t, filepath.Join(dir, backendFile))
	require.NoError(t, backend{kind: "gcs", settings: map[string]any{"bucket": "b"}}.write(dir))
	text, err := os.ReadFile(filepath.Join(dir, backendFile))
	require.NoError(t, err)
	require.JSONEq(t, `{"terraform":{"backend":{"gcs":{"bucket":"b"}}}}`, string(text))
}

func TestTerraformGetsTheBackendsCredentials(t *testing.T) {
	got := environment([]string{"AZURE_STORAGE_KEY=k", "AWS_SECRET_ACCESS_KEY=s", "TF_LOG=trace", "SLIPWAY_STATE_URL=u", "AZURE_CLIENT_ID="}, "/dir")
	require.Equal(t, map[string]string{
		"AZURE_STORAGE_KEY": "k", "ARM_ACCESS_KEY": "k", "AWS_SECRET_ACCESS_KEY": "s", "AZURE_CLIENT_ID": "",
		"CHECKPOINT_DISABLE": "1", "HOME": "/dir",
	}, got)
}

// TestAStateIsNotLeftBehind: with another store, Terraform would make everything a
// second time.
func TestAStateIsNotLeftBehind(t *testing.T) {
	env := step.NewEnv("r1", "infrastructure/terraform", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
	require.NoError(t, os.MkdirAll(filepath.Dir(statePath(env)), 0o700))
	require.NoError(t, os.WriteFile(statePath(env), []byte(`{"version":4,"serial":1,"resources":[{"mode":"managed","type":"a","name":"b"}]}`), 0o600))
	require.NoError(t, notLeftBehind(t.Context(), env), "the volume is the store")

	env = step.NewEnv("r1", "infrastructure/terraform", step.Dirs{State: env.StateDir}, io.Discard, io.Discard)
	env.Place.URL, env.Place.Openers = "s3://bucket", map[string]store.Opener{"s3": memory{}}
	err := notLeftBehind(t.Context(), env)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeLeftBehind})
	require.ErrorContains(t, err, "1 resources")
	_, err = toolchain{dir: "/nowhere"}.terraform(t.Context(), env, contract.TerraformInput{})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeLeftBehind})

	s, err := env.Store(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), stateKey, []byte(`{"version":4,"serial":7,"resources":[]}`)))
	require.NoError(t, notLeftBehind(t.Context(), env), "it was copied")
	seen, err := currentState(t.Context(), env)
	require.NoError(t, err)
	require.EqualValues(t, 7, seen.Serial)
}

// memory opens buckets in memory in the place of S3's.
type memory struct{}

func (memory) OpenBucketURL(context.Context, *url.URL) (*blob.Bucket, error) {
	return memblob.OpenBucket(nil), nil
}

func (memory) Kind(err error) store.Kind {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return store.Absent
	}
	return store.Other
}

func (memory) Credentials() []string { return nil }
