package caller

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config"
)

// parsed are the flags of a command line, with what the environment says.
func parsed(t *testing.T, env map[string]string, args ...string) *Flags {
	t.Helper()
	for _, name := range []string{Env, "CI", module.Env} {
		t.Setenv(name, env[name])
	}
	var f Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(set)
	f.AddJoin(set)
	f.AddHere(set)
	require.NoError(t, set.Parse(args))
	return &f
}

func TestWhoWorks(t *testing.T) {
	team := &config.Config{Advanced: config.Advanced{Owner: "the team"}}
	for _, x := range []struct {
		env  map[string]string
		args []string
		cfg  *config.Config
		want string
	}{
		{nil, nil, config.Default(), "alice@laptop"},
		{nil, nil, team, "the team"},
		{map[string]string{Env: "me"}, nil, team, "me"},
		{map[string]string{Env: "me"}, []string{"--owner", "you"}, team, "you"},
		{map[string]string{"CI": "true"}, nil, config.Default(), ""},
		{map[string]string{"CI": "false"}, nil, config.Default(), "alice@laptop"},
		{map[string]string{"CI": "true"}, nil, team, "the team"},
		{map[string]string{"CI": "1", Env: "me"}, nil, config.Default(), "me"},
		{map[string]string{module.Env: "1"}, nil, config.Default(), ""},
		{map[string]string{module.Env: "1"}, []string{"--owner", "you", "--join"}, config.Default(), "you"},
	} {
		got, err := parsed(t, x.env, x.args...).Of(x.cfg, "alice", "laptop")
		require.NoError(t, err)
		require.Equal(t, x.want, got, x)
	}

	asks := parsed(t, nil)
	asks.Compares = false
	got, err := asks.Of(team, "alice", "laptop")
	require.NoError(t, err)
	require.Empty(t, got, "nothing is compared by what changes nothing")
}

func TestWhoCannotWork(t *testing.T) {
	for says, f := range map[string]*Flags{
		"give 1 to 100 characters on one line": parsed(t, nil, "--owner", "two\nlines"),
		"say who you are with --owner":         parsed(t, map[string]string{"CI": "true"}, "--join"),
	} {
		_, err := f.Of(config.Default(), "alice", "laptop")
		require.ErrorContains(t, err, says)
	}
}
