package preorchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// preparing is a cluster, and a release that prepares it as these sections say.
func preparing(t *testing.T, sections string) (*kubetest.API, *step.Env) {
	t.Helper()
	env := connected(t, "")
	release(t, env, sections)
	return cluster(t, env, "first"), env
}

// cluster has a step work on a cluster with nothing in it, which is not the one before.
func cluster(t *testing.T, env *step.Env, uid string) *kubetest.API {
	t.Helper()
	api := kubetest.Serve(t)
	api.Set(t, "/api/v1/namespaces/kube-system", "metadata: {uid: "+uid+"}")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL)
	require.NoError(t, os.WriteFile(env.Kubeconfig, []byte(text), 0o600))
	return api
}

// release is the one of a step's environment, with these sections.
func release(t *testing.T, env *step.Env, sections string) {
	t.Helper()
	for name, text := range map[string]string{
		platform.File: "apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: manifests, path: a.yaml, namespace: shop}]\n" + sections,
		"a.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(env.PlatformDir, name), []byte(text), 0o600))
	}
}

// atStatus shows those without Slipway how far the install is.
const atStatus = "/api/v1/namespaces/slipway-system/configmaps/slipway-status"

const required = `
requires:
  - {secret: shop/license, keys: [key, vendor]}
  - {configMap: shop/settings, keys: [logo]}
  - {configMap: shop/any}
`

func TestWhatOthersPutIntoTheClusterIsWaitedFor(t *testing.T) {
	const license, settings = "/api/v1/namespaces/shop/secrets/license", "/api/v1/namespaces/shop/configmaps/settings"
	api, env := preparing(t, required)
	look := func() error {
		_, err := step.Unchanged(runRequires)(t.Context(), env, contract.Nothing{})
		return err
	}
	require.EqualError(t, look(), "waiting for secret shop/license, configmap shop/settings, configmap shop/any")
	api.Set(t, license, "data: {key: YQ==, vendor: ''}")
	api.Set(t, settings, "data: {name: x}")
	require.Nil(t, api.Get(atStatus))
	require.EqualError(t, look(), "waiting for secret shop/license (key vendor), configmap shop/settings (key logo), configmap shop/any")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := runRequires(ctx, env, contract.Nothing{})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeRequires})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "wait for what the platform requires of others: waited ")
	require.ErrorContains(t, err, "last seen: waiting for secret shop/license (key vendor), ")
	require.Equal(t, "Waiting", api.Get(atStatus)["data"].(map[string]any)["state"])

	time.AfterFunc(300*time.Millisecond, func() {
		api.Set(t, license, "data: {vendor: Yg==}")
		api.Set(t, settings, "binaryData: {logo: AAAA}")
		api.Set(t, "/api/v1/namespaces/shop/configmaps/any", "{}")
	})
	out, err := runRequires(t.Context(), env, contract.Nothing{})
	require.NoError(t, err)
	require.Equal(t, contract.Requirements{Names: []string{"secret shop/license", "configmap shop/settings", "configmap shop/any"}}, out)
	require.NoError(t, look())
	require.Equal(t, []string{"PATCH " + atStatus}, slices.Compact(api.Writes()), "nothing but what is waited for")
	require.Equal(t, "installing sample 1.0.0", api.Get(atStatus)["data"].(map[string]any)["message"])

	_, err = runRequires(t.Context(), forbidden(t, env), contract.Nothing{})
	require.ErrorContains(t, err, "you may not")
	require.NotErrorIs(t, err, &fault.Fault{Code: CodeRequires}, "waiting does not help")
}

// forbidden is the environment with a cluster in which nothing may be read.
func forbidden(t *testing.T, env *step.Env) *step.Env {
	t.Helper()
	other := newEnv(t, nil)
	other.PlatformDir = env.PlatformDir
	return other
}

func TestConfigMapsAreMadeFromTheConfiguration(t *testing.T) {
	const at = "/api/v1/namespaces/shop/configmaps/settings"
	api, env := preparing(t, "configMaps: [{name: settings, namespace: shop, data: {url: \"https://web.{domain}\", size: \"{settings.size}\", proxy: \"{proxy.http}\", none: text}}]\n")
	in := func(size any) contract.ConfigMapsInput {
		return contract.ConfigMapsInput{Fill: map[string]any{"domain": "example.org", "settings.size": size, "proxy.http": ""}}
	}
	_, err := step.Unchanged(runConfigMaps)(t.Context(), env, in(1048576.0))
	require.ErrorIs(t, err, plan.ErrChange)
	out, err := runConfigMaps(t.Context(), env, in(1048576.0))
	require.NoError(t, err)
	require.Equal(t, contract.ConfigMaps{Names: []string{"shop/settings"}, Changed: 1}, out)
	require.Equal(t, map[string]any{"url": "https://web.example.org", "size": "1048576", "proxy": "", "none": "text"}, api.Get(at)["data"])
	require.Equal(t, map[string]any{kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo"}, api.Get(at)["metadata"].(map[string]any)["labels"])

	before := len(api.Writes())
	_, err = step.Unchanged(runConfigMaps)(t.Context(), env, in(1048576.0))
	require.NoError(t, err)
	out, err = runConfigMaps(t.Context(), env, in(1048576.0))
	require.NoError(t, err)
	require.Zero(t, out.Changed)
	require.Len(t, api.Writes(), before)

	api.Set(t, at, "data: {more: somebody's}")
	out, err = runConfigMaps(t.Context(), env, in("large"))
	require.NoError(t, err)
	require.Equal(t, 1, out.Changed)
	require.Equal(t, map[string]any{"url": "https://web.example.org", "size": "large", "proxy": "", "none": "text"}, api.Get(at)["data"], "exactly that")

	_, err = runConfigMaps(t.Context(), env, contract.ConfigMapsInput{Fill: map[string]any{"domain": "example.org", "proxy.http": ""}})
	require.EqualError(t, err, "make configmap shop/settings: size: nothing is known for {settings.size}")
}

// TestTheSaltIsMadeWithTheSecrets: what the configuration of pods is known by.
func TestTheSaltIsMadeWithTheSecrets(t *testing.T) {
	const at = "/api/v1/namespaces/slipway-system/secrets/slipway-salt"
	api, env := preparing(t, "secrets: [{name: login, namespace: shop, keys: [{key: password, generate: password}]}]\n")
	out, err := runSecrets(t.Context(), env, secretsInput())
	require.NoError(t, err)
	require.Equal(t, []string{"shop/login", "slipway-system/slipway-salt"}, out.Created)
	salt := text(t, api, at)[kube.SaltKey]
	require.Len(t, salt, platform.DefaultLength)
	out, err = runSecrets(t.Context(), env, secretsInput())
	require.NoError(t, err)
	require.Empty(t, out.Created)
	require.Equal(t, salt, text(t, api, at)[kube.SaltKey], "and never changes: pods would start again")
}
