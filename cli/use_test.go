package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
)

func TestTheDeploymentsThatAreKeptAreListed(t *testing.T) {
	folder := keptDeployments(t, "", "dev", "staging")
	dir := filepath.Dir(folder.File("dev"))
	require.NoError(t, folder.Use("dev"))
	code, out, errs := slipway("use")
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	require.Equal(t, "* dev      "+dir+"/dev.yaml\n  staging  "+dir+"/staging.yaml\n", out)

	require.NoError(t, os.Remove(folder.File("dev")))
	code, out, errs = slipway("use")
	require.Equal(t, 2, code)
	require.Contains(t, out, "  staging  ", "one of them is to be chosen")
	require.NotContains(t, out, "* ")
	require.Contains(t, errs, "CFG-008")
	require.Contains(t, errs, "slipway use NAME")
}

func TestNoDeploymentIsKept(t *testing.T) {
	keptDeployments(t, "")
	code, out, errs := slipway("use")
	require.Zero(t, code, errs)
	require.Equal(t, "no configurations are stored; slipway configure creates one\n", out)

	code, out, errs = slipway("use", "dev")
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, errs, "CFG-008")
	require.Contains(t, errs, "slipway configure")
}

func TestWhatCannotBeChosen(t *testing.T) {
	keptDeployments(t, "", "dev")
	for _, args := range [][]string{{"use", "dev", "dev"}, {"use", ""}} {
		code, _, errs := slipway(args...)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "See slipway use --help.")
	}
}

func TestAVariableThatComesFirstIsToldOf(t *testing.T) {
	keptDeployments(t, "", "dev", "staging")
	t.Setenv(source.EnvDeployment, "staging")
	code, _, errs := slipway("use", "dev")
	require.Zero(t, code, errs)
	require.Equal(t, "slipway: in this shell commands go on working on staging: SLIPWAY_DEPLOYMENT is set, and comes first\n", errs)
	code, _, errs = slipway("use", "staging")
	require.Zero(t, code, errs)
	require.Empty(t, errs)
}

func TestAConfigurationIsForgotten(t *testing.T) {
	folder := keptDeployments(t, "", "staging", "prod")
	require.NoError(t, folder.Use("staging"))
	for _, name := range []string{"prod", "staging"} {
		code, out, errs := slipway("use", "--forget", name)
		require.Zero(t, code, errs)
		require.Equal(t, "the configuration of deployment "+name+" is removed; what is installed stays\n", out)
		require.NoFileExists(t, folder.File(name))
	}
	current, err := folder.Current()
	require.NoError(t, err)
	require.Empty(t, current, "the current one is none now")

	code, _, errs := slipway("use", "--forget", "staging")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-008")
	code, _, errs = slipway("use", "--forget", "staging", "staging")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "give --forget alone")
}
