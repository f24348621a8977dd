package deployment

import (
	"io"
	"os/user"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/progress"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// keptDeployments are deployments of these names in a folder of the test's own; text
// follows what each must have.
func keptDeployments(t *testing.T, text string, names ...string) config.Folder {
	t.Helper()
	t.Setenv(config.EnvFolder, t.TempDir())
	folder, err := config.DefaultFolder()
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, folder.Write(name, []byte("apiVersion: slipway.sh/v1\nglobal: {name: "+name+"}\n"+text)))
	}
	return folder
}

// parsed are the flags of a command line.
func parsed(t *testing.T, args ...string) *Flags {
	t.Helper()
	cmd, f := &cobra.Command{Use: "install"}, &Flags{}
	f.AddFlags(cmd, &source.Program{Version: "dev", Providers: providers.All()})
	cmd.Flags().Bool("keep-cluster", false, "")
	f.Release.AddFlags(cmd.Flags())
	require.NoError(t, cmd.ParseFlags(args))
	return f
}

func TestWhatTheProcessInTheBackgroundIsGiven(t *testing.T) {
	f := parsed(t, "--keep-cluster", "-c", "my config.yaml", "--platform", "p", "--name=x", "-v")
	require.Equal(t, []string{"--config=my config.yaml", "--name=x", "--verbose=true"}, f.args())
}

// TestWhoWorks: with sudo, who called it.
func TestWhoWorks(t *testing.T) {
	me, err := user.Current()
	require.NoError(t, err)
	t.Setenv("SUDO_USER", "")
	name, _ := whoAmI()
	require.Equal(t, me.Username, name)
	t.Setenv("SUDO_USER", "alice")
	want := me.Username // nobody else can say who called them
	if me.Uid == "0" {
		want = "alice"
	}
	name, _ = whoAmI()
	require.Equal(t, want, name)
}

// The process in the background works on the deployment that was chosen, also when
// another one is chosen meanwhile.
func TestTheProcessInTheBackgroundIsToldOfTheDeployment(t *testing.T) {
	folder := keptDeployments(t, "", "dev")
	require.NoError(t, folder.Use("dev"))
	for _, args := range [][]string{nil, {"--name", "dev"}} {
		f := parsed(t, args...)
		_, err := f.Source.Load(console.Streams{Err: progress.Open(io.Discard, progress.Options{})})
		require.NoError(t, err)
		require.Equal(t, []string{"--name=dev"}, f.args())
	}
}
