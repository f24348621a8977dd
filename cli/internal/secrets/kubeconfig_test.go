package secrets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
)

// nowhere finds no secret.
type nowhere struct{ Source }

func (nowhere) Find(context.Context, config.SecretRef) (*dagger.Secret, error) {
	return nil, errors.New("the environment variable K is not set or is empty")
}

func TestAKubeconfigThatIsNotThere(t *testing.T) {
	_, err := new(Flags).Kubeconfig(t.Context(), providers.ExternalCluster{Kubeconfig: "env:K"}, nowhere{})
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeNoSecret})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.EqualError(t, err, "find the kubeconfig of the cluster: the environment variable K is not set or is empty")
}

func TestAKubeconfigIsJudgedWhereItCanBeRead(t *testing.T) {
	t.Setenv(usage.EnvModule, "")
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("config", "clusters: [{name: c, cluster: {server: 'https://a', certificate-authority: ca.crt}}]\nusers: [{name: u, user: {token: x}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n")
	before, err := os.Stat(file)
	require.NoError(t, err)
	access := providers.ExternalCluster{Kubeconfig: config.SecretRef("file:" + file)}
	var f Flags
	require.ErrorIs(t, f.CheckKubeconfig(access), &fault.Fault{Code: kubeconfig.CodeInvalid})
	ca, err := certificate.NewCA("demo", time.Now())
	require.NoError(t, err)
	write("ca.crt", string(ca.Certificate))
	require.NoError(t, f.CheckKubeconfig(access), "a relative path is from the kubeconfig's directory")
	f.Brought = true
	require.ErrorContains(t, f.CheckKubeconfig(access), "ca.crt: it is read only if --package-key verifies the author of the package", "not because a package says so")
	f.Brought = false
	access.Context = "prod"
	require.ErrorIs(t, f.CheckKubeconfig(access), &fault.Fault{Code: kubeconfig.CodeInvalid})
	after, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())

	t.Setenv("SLIPWAY_TEST_KUBECONFIG", "no kubeconfig")
	access = providers.ExternalCluster{Kubeconfig: "env:SLIPWAY_TEST_KUBECONFIG"}
	require.ErrorIs(t, f.CheckKubeconfig(access), &fault.Fault{Code: kubeconfig.CodeInvalid})
	f.SecretsFile = filepath.Join(dir, "secrets.env")
	write("secrets.env", "SLIPWAY_TEST_KUBECONFIG='clusters: [{name: c, cluster: {server: https://a}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x'\n")
	require.NoError(t, f.CheckKubeconfig(access), "the file of --secrets comes first")
	write("secrets.env", "SLIPWAY_TEST_KUBECONFIG='{}'\n")
	require.ErrorIs(t, f.CheckKubeconfig(access), &fault.Fault{Code: kubeconfig.CodeInvalid})
	require.ErrorIs(t, f.CheckKubeconfig(providers.ExternalCluster{Kubeconfig: config.SecretRef("file:" + dir)}), &fault.Fault{Code: config.CodeNoSecret}, "a directory")
	for _, none := range []string{"file:$HOME/.kube/config", "file:a/x.yaml:a/y.yaml"} {
		require.ErrorContains(t, f.CheckKubeconfig(providers.ExternalCluster{Kubeconfig: config.SecretRef(none)}), "it is one path, in which no variables are replaced")
	}
	require.NoError(t, f.CheckKubeconfig(providers.ExternalCluster{Kubeconfig: config.SecretRef("file:" + dir + "/none")}), "it may be on another machine")
	require.NoError(t, new(Flags).CheckKubeconfig(providers.ExternalCluster{Kubeconfig: "cmd:exit 1"}), "it is known once it runs")
}
