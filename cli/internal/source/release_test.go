package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// TestAReleaseThatTheModuleCannotSee: the configuration names a directory on the
// machine that calls; only a flag hands one over.
func TestAReleaseThatTheModuleCannotSee(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {release: ./mine}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	release := func() *fault.Fault {
		err := new(Release).Open(t.Context(), cfg, filepath.Clean, nil, &conductor.Options{})
		require.ErrorIs(t, err, &fault.Fault{Code: config.CodeUnreadable})
		f, _ := errors.AsType[*fault.Fault](err)
		return f
	}
	require.NotContains(t, release().Fix, "dagger call")
	t.Setenv(usage.EnvModule, "1")
	f := release()
	require.Equal(t, fault.Usage, f.Class)
	require.Contains(t, f.Fix, "dagger call install --platform DIR")
	require.ErrorContains(t, f, "./mine")
}

// TestAReleaseThatTheEngineFetches is not on this machine.
func TestAReleaseThatTheEngineFetches(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {release: \"https://git.example.com/platform.git@v1.2.0\"}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	_, err = new(Release).Load(cfg, filepath.Clean)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFetch})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.Nil(t, new(Release).Known(filepath.Clean)(cfg))
}

// TestALinkIsNotFollowed: a run would refuse it, and what it leads to is not part of the
// release.
func TestALinkIsNotFollowed(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	require.NoError(t, os.WriteFile(outside, []byte("a: hunter2: b\n"), 0o600))
	for _, link := range []string{"web/templates/x.yaml", "guidance.txt", platform.File} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "web/templates"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "web/Chart.yaml"), []byte("{apiVersion: v2, name: web, version: 1.0.0}"), 0o600))
		release := "apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: chart, path: web, namespace: shop}]\n"
		if link != platform.File {
			require.NoError(t, os.WriteFile(filepath.Join(dir, platform.File), []byte(release), 0o600))
		}
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here: ", err)
		}
		_, err := (&Release{Dir: dir}).Load(cfg, filepath.Clean)
		require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
		require.ErrorContains(t, err, link+": a symbolic link instead of a file")
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err = (&Release{Dir: t.TempDir()}).Load(cfg, filepath.Clean)
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeMissing})
}
