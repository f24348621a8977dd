package preorchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	atRepository = "/api/v1/namespaces/cd/secrets/repository-platform"
	atCerts      = "/api/v1/namespaces/cd/configmaps/argocd-tls-certs-cm"
)

// TestArgoCDIsToldOfARepositoryOfTheUsers in each way in which it is read.
func TestArgoCDIsToldOfARepositoryOfTheUsers(t *testing.T) {
	const https, ssh = "https://127.0.0.1:1/team/platform.git", "git@git.slipway.invalid:team/platform.git"
	const password = "hunter2"
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n"
	for what, c := range map[string]struct {
		in      contract.RepositoryInput
		data    map[string]string
		trusted map[string]any
	}{
		"by anybody":    {contract.RepositoryInput{URL: https, Host: "127.0.0.1:1"}, map[string]string{"type": "git", "url": https}, map[string]any{}},
		"by a password": {contract.RepositoryInput{URL: https, Host: "127.0.0.1:1", Username: "argocd", Password: true}, map[string]string{"type": "git", "url": https, "username": "argocd", "password": password}, map[string]any{}},
		"by SSH":        {contract.RepositoryInput{URL: ssh, Host: "git.slipway.invalid", Key: true}, map[string]string{"type": "git", "url": ssh, "sshPrivateKey": key}, map[string]any{}},
		"of another CA": {contract.RepositoryInput{URL: https, Host: "127.0.0.1:1", CA: "a certificate"}, map[string]string{"type": "git", "url": https}, map[string]any{"127.0.0.1": "a certificate"}},
	} {
		t.Run(what, func(t *testing.T) {
			api, env := preparing(t, "")
			env.UserSecretsDir = t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(env.UserSecretsDir, contract.GitPassword), []byte(password+"\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(env.UserSecretsDir, contract.GitKey), []byte(key), 0o600))
			c.in.Namespace = "cd"
			_, err := step.Unchanged(runRepository)(t.Context(), env, c.in)
			require.ErrorIs(t, err, plan.ErrChange)
			out, err := runRepository(t.Context(), env, c.in)
			require.NoError(t, err)
			require.Equal(t, contract.Repository{URL: c.in.URL}, out)
			require.Equal(t, c.data, text(t, api, atRepository))
			require.Equal(t, map[string]any{kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo", "argocd.argoproj.io/secret-type": "repository"}, api.Get(atRepository)["metadata"].(map[string]any)["labels"])
			got, _ := api.Get(atCerts)["data"].(map[string]any)
			require.Len(t, got, len(c.trusted), "Argo CD's pods need it, also without any")
			for host, ca := range c.trusted {
				require.Equal(t, ca, got[host])
			}
			for _, secret := range []string{password, key} {
				if c.in.Password && secret == password || c.in.Key && secret == key {
					require.NotContains(t, env.Clean("it is "+secret), strings.TrimSpace(secret))
				}
			}

			before := len(api.Writes())
			_, err = step.Unchanged(runRepository)(t.Context(), env, c.in)
			require.NoError(t, err)
			_, err = runRepository(t.Context(), env, c.in)
			require.NoError(t, err)
			require.Len(t, api.Writes(), before)
		})
	}
	_, env := preparing(t, "")
	env.UserSecretsDir = t.TempDir()
	_, err := runRepository(t.Context(), env, contract.RepositoryInput{Namespace: "cd", URL: https, Password: true})
	require.ErrorContains(t, err, "read the secret git.password of the configuration: ")
}
