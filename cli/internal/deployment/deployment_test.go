package deployment

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/copies"
	"github.com/slipway-sh/slipway/cli/internal/engine"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/pipeline/progress"
	providers "github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// keptDeployments are deployments of these names in a folder of the test's own; text
// follows what each must have.
func keptDeployments(t *testing.T, text string, names ...string) deployments.Folder {
	t.Helper()
	t.Setenv(deployments.EnvFolder, t.TempDir())
	folder, err := deployments.Default()
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
	f.AddFlags(cmd, cmd.Flags(), "dev", source.Registries{Providers: providers.All()})
	cmd.Flags().Bool("keep-cluster", false, "")
	f.Release.AddFlags(cmd.Flags())
	require.NoError(t, cmd.ParseFlags(args))
	return f
}

func TestWhatTheProcessInTheBackgroundIsGiven(t *testing.T) {
	f := parsed(t, "--keep-cluster", "-c", "my config.yaml", "--platform", "p", "--name=x", "-v")
	require.Equal(t, []string{"--config=my config.yaml", "--name=x", "--verbose=true"}, f.args())
}

// TestWhatTheDataFolderKnows: which deployments are the user's, and which engine this is, where
// the state is in a bucket.
func TestWhatTheDataFolderKnows(t *testing.T) {
	t.Setenv(copies.Env, t.TempDir())
	t.Setenv(daggercli.EnvRunner, "unix:///a")
	user := "me"
	opts := func(url string) *conductor.Options {
		o := &conductor.Options{User: user, Config: &config.Config{Global: config.Global{Name: "demo"}}, State: conductor.State{URL: url}}
		require.NoError(t, keep(o, nil))
		return o
	}
	require.Empty(t, opts("s3://bucket").Caller)
	const id = "aaaaaaaaaaaaaaaa"
	folder, err := copies.Open("demo", engine.AtHand(), "s3://bucket", "me")
	require.NoError(t, err)
	require.NoError(t, folder.Keep(func(dir, _ string) error {
		c := contract.Copy{Identity: contract.Identity{ID: id, Name: "demo"}, Stored: contract.Stored{Claim: contract.Claim{Engine: &contract.Engine{ID: "e1"}}}}
		text, err := json.Marshal(c)
		require.NoError(t, err)
		return os.WriteFile(filepath.Join(dir, contract.CopyFile), text, 0o600)
	}))
	require.Equal(t, contract.Caller{Known: []string{id}, Engine: "e1"}, opts("s3://bucket").Caller)
	require.Equal(t, contract.Caller{Known: []string{id}}, opts("").Caller)
	t.Setenv(daggercli.EnvRunner, "unix:///b")
	require.Equal(t, contract.Caller{Known: []string{id}}, opts("s3://bucket").Caller, "the other engine had it")
	user = "other"
	require.Empty(t, opts("s3://bucket").Caller.Known, "with sudo, the folder is not theirs alone")
	t.Setenv(module.Env, "1")
	require.Empty(t, opts("s3://bucket").Caller)
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

// values is a secrets.Source that notes what is set.
type values struct {
	secrets.Source
	set map[string]string
}

func (v values) Set(name, value string) *dagger.Secret {
	v.set[name] = value
	return &dagger.Secret{}
}

// TestTheKeyOfTheCopyOutlastsIt: the engine asks for a file whenever it needs the secret in it,
// and a run replaces the files of the copy.
func TestTheKeyOfTheCopyOutlastsIt(t *testing.T) {
	t.Setenv(copies.Env, t.TempDir())
	folder, err := copies.Open("demo", engine.AtHand(), "s3://bucket", "me")
	require.NoError(t, err)
	require.NoError(t, folder.Keep(func(dir, _ string) error {
		text, err := json.Marshal(contract.Copy{
			Identity: contract.Identity{ID: "aaaaaaaaaaaaaaaa", Name: "demo"},
			Files:    map[string]contract.CopiedFile{contract.CopyIdentity: {Name: "identity"}},
		})
		require.NoError(t, err)
		return errors.Join(
			os.WriteFile(filepath.Join(dir, "identity"), []byte("AGE-SECRET-KEY-1"), 0o600),
			os.WriteFile(filepath.Join(dir, contract.CopyFile), text, 0o600))
	}))
	from := values{set: map[string]string{}}
	opts := &conductor.Options{Config: &config.Config{Global: config.Global{Name: "demo"}}, State: conductor.State{URL: "s3://bucket"}}
	require.NoError(t, keep(opts, from))
	require.Equal(t, map[string]string{"identity": "AGE-SECRET-KEY-1"}, from.set)
	require.NotNil(t, opts.State.Made)
}

// The process in the background works on the deployment that was chosen, also when
// another one is chosen meanwhile.
func TestTheProcessInTheBackgroundIsToldOfTheDeployment(t *testing.T) {
	folder := keptDeployments(t, "", "dev")
	require.NoError(t, folder.Use("dev"))
	for _, args := range [][]string{nil, {"--deployment", "dev"}} {
		f := parsed(t, args...)
		_, err := f.Source.Load(console.Streams{Err: progress.Open(io.Discard, progress.Options{})})
		require.NoError(t, err)
		require.Equal(t, []string{"--deployment=dev"}, f.args())
	}
}
