package config_test

import (
	"errors"
	"testing"

	"github.com/slipway-sh/slipway/config"
	"github.com/stretchr/testify/require"
)

func stateOptions(store error) config.Options {
	return config.Options{
		Stores: map[string][]string{"s3": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, "gs": {"GOOGLE"}},
		Store:  func(string) error { return store },
	}
}

func TestState(t *testing.T) {
	c, err := config.Load(v1(`state:
  url: s3://bucket?region=eu-central-1
  key: env:STATE_KEY
  credentials:
    AWS_ACCESS_KEY_ID: env:ID
    AWS_SECRET_ACCESS_KEY: file:/run/secrets/key
`), stateOptions(nil))
	require.NoError(t, err)
	require.Equal(t, config.State{
		URL: "s3://bucket?region=eu-central-1", Key: "env:STATE_KEY",
		Credentials: map[string]config.SecretRef{"AWS_ACCESS_KEY_ID": "env:ID", "AWS_SECRET_ACCESS_KEY": "file:/run/secrets/key"},
	}, c.State)
	again, err := config.Load(c.Canonical(), stateOptions(nil))
	require.NoError(t, err)
	require.Equal(t, c.State, again.State)

	opts := stateOptions(nil)
	opts.StateURL = "gs://other"
	c, err = config.Load(v1("state: {url: \"s3://bucket\"}"), opts)
	require.NoError(t, err)
	require.Equal(t, "gs://other", c.State.URL)
}

func TestState_allProblemsAtOnce(t *testing.T) {
	for text, c := range map[string]struct {
		store error
		want  []string
	}{
		"state:\n  url: ftp://me:hunter2@bucket\n  key: AGE-SECRET-KEY-1HUNTER2\n  credentials:\n    A-B: env:X\n    AWS_ACCESS_KEY_ID: hunter2\n": {
			errors.New(`there are no buckets of kind "ftp"`), []string{
				`line 2: state.url: got something else, want a bucket's URL, gs://, s3://bucket (there are no buckets of kind "ftp"); or none, for the engine's volume`,
				`line 3: state.key: got something else, want where the key is: env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD; the key itself does not belong in this file`,
				`line 5: state.credentials.A-B: got "A-B", want the name of a variable`,
				`line 6: state.credentials.AWS_ACCESS_KEY_ID: got something else, want where the credential is: env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD; the credential itself does not belong in this file`,
			}},
		"state:\n  key: env:KEY\n  credentials: {AWS_ACCESS_KEY_ID: \"env:X\"}\n": {nil, []string{
			`line 2: state.key: got a value, want none without state.url`,
			`line 3: state.credentials.AWS_ACCESS_KEY_ID: got a value, want none without state.url`,
		}},
		"state:\n  url: s3://bucket\n  credentials: {GOOGLE: \"env:X\", AWS_SECRET_ACCESS_KEY: }\n": {nil, []string{
			`line 3: state.credentials.AWS_SECRET_ACCESS_KEY: got nothing, want where the credential is: env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD; the credential itself does not belong in this file`,
			`line 3: state.credentials.GOOGLE: got "GOOGLE", want AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY for s3`,
		}},
	} {
		_, err := config.Load(v1(text), stateOptions(c.store))
		var got []string
		for _, p := range config.Problems(err) {
			got = append(got, p.String())
		}
		require.Equal(t, c.want, got)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "HUNTER2")
	}
}
