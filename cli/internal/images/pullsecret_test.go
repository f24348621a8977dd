package images

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
)

// unasked is a client of an engine that is asked nothing.
func unasked(t *testing.T) *dagger.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the engine is asked")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	t.Setenv("DAGGER_SESSION_PORT", at.Port())
	t.Setenv("DAGGER_SESSION_TOKEN", "x")
	client, err := dagger.Connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestTheAccountOfTheNodes: that of the registry, under whatever name they know it.
func TestTheAccountOfTheNodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"auths":{"registry.example.com:5000":{"auth":"cHVsbGVyOnIxZ2h0"}}}`), 0o600))
	client := unasked(t)
	const registry = "registry.example.com:5000/slipway"
	for what, c := range map[string]struct {
		provider providers.Provider
		more     string
		mirror   string
		registry string
		want     bool
	}{
		"the registry's":             {local.Provider{}, "", "https://" + registry, registry, true},
		"the mirror's":               {local.Provider{}, "local: {registryMirror: \"http://192.0.2.1:5000/slipway\"}\n", "http://192.0.2.1:5000/slipway", registry, true},
		"of another registry":        {local.Provider{}, "", "https://other.example.com/slipway", "other.example.com/slipway", false},
		"a cluster that is there":    {existing.Provider{}, "provider: existing\nexisting: {kubeconfig: env:K, registry: \"192.0.2.1:5000/slipway\"}\n", "", registry, true},
		"for hooks around configure": {nil, "", "https://" + registry, registry, false},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"+c.more), config.Options{DefaultProvider: "local", Providers: []string{"local", "existing"}})
			require.NoError(t, err)
			images := &containers.Images{Mirror: c.mirror}
			require.NoError(t, (&Flags{RegistryAuth: file}).pullSecret(t.Context(), client, cfg, images, c.provider, c.registry, ""))
			require.Equal(t, c.want, images.PullSecret != nil)
			require.Equal(t, c.want, images.PullSecretDigest != "")
		})
	}
}

// TestAPackageChoosesNoRegistryForAnAccount: whoever sent it could send the nodes, with the user's
// account, to a registry of theirs, or have the account of any registry sent to the one of the lock.
func TestAPackageChoosesNoRegistryForAnAccount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"auths":{"registry.example.com:5000":{"auth":"cHVsbGVyOnIxZ2h0"}}}`), 0o600))
	client := unasked(t)
	const own, evil = "registry.example.com:5000/slipway", "evil.example/slipway"
	there := "provider: existing\nexisting: {kubeconfig: env:K, registry: " + evil + "}\n"
	lent := "provider: existing\nexisting: {kubeconfig: env:K, registry: lock.example/x}\n" // which passes for the lock's
	for what, c := range map[string]struct {
		provider         providers.Provider
		more             string
		mirror, registry string // of the images; the package's unless the user names it
		flag, lock       string
		brought, account bool
		refused          bool
	}{
		"the mirror of a node":                  {provider: local.Provider{}, mirror: "https://" + evil, registry: own, flag: own, brought: true, refused: true},
		"the registry as nodes know it":         {provider: existing.Provider{}, more: there, registry: own, lock: own, brought: true, refused: true},
		"a registry with an account":            {provider: local.Provider{}, mirror: "https://" + own, registry: own, lock: "other.example/x", brought: true, refused: true},
		"a registry that nobody else names":     {provider: local.Provider{}, mirror: "https://" + own, registry: own, brought: true, refused: true},
		"a registry without an account":         {provider: local.Provider{}, mirror: "https://" + evil, registry: evil, lock: own, brought: true},
		"the user's registry":                   {provider: local.Provider{}, mirror: "https://" + own, registry: own, flag: own, brought: true, account: true},
		"the lock's registry":                   {provider: local.Provider{}, mirror: "https://" + own, registry: own, lock: own, brought: true, account: true},
		"another registry's account, nodes":     {provider: existing.Provider{}, more: lent, registry: own, lock: "lock.example/x", brought: true, refused: true},
		"another registry's account, a mirror":  {provider: local.Provider{}, mirror: "https://lock.example/x", registry: own, lock: "lock.example/x", brought: true, refused: true},
		"the lock's registry in clear":          {provider: local.Provider{}, mirror: "http://" + own, registry: own, lock: own, brought: true, refused: true},
		"the user's registry in clear":          {provider: local.Provider{}, mirror: "http://" + own, registry: own, flag: own, brought: true, refused: true},
		"in clear, of a package with its key":   {provider: local.Provider{}, mirror: "http://" + own, registry: own, lock: own, account: true},
		"the mirror, of a package with its key": {provider: local.Provider{}, mirror: "https://" + evil, registry: own, lock: own, account: true},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"+c.more), config.Options{DefaultProvider: "local", Providers: []string{"local", "existing"}})
			require.NoError(t, err)
			images := &containers.Images{Mirror: c.mirror}
			err = (&Flags{RegistryAuth: file, Registry: c.flag, Brought: c.brought}).pullSecret(t.Context(), client, cfg, images, c.provider, c.registry, c.lock)
			if c.refused {
				require.ErrorIs(t, err, &fault.Fault{Code: registries.CodeAccount})
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.account, images.PullSecret != nil)
		})
	}
}

// TestAKubeletKnowsPasswordsOnly: the node of a local cluster renews tokens, as docker does.
func TestAKubeletKnowsPasswordsOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"auths":{"registry.example.com":{"identitytoken":"renewed"}}}`), 0o600))
	client := unasked(t)
	for provider, code := range map[providers.Provider]fault.Code{local.Provider{}: "", existing.Provider{}: registries.CodeAccount} {
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nexisting: {kubeconfig: env:K}\n"), config.Options{DefaultProvider: "local", Providers: []string{"local", "existing"}})
		require.NoError(t, err)
		images := &containers.Images{Mirror: "https://registry.example.com/slipway"}
		err = (&Flags{RegistryAuth: file}).pullSecret(t.Context(), client, cfg, images, provider, "registry.example.com/slipway", "")
		if code == "" {
			require.NoError(t, err)
			require.NotNil(t, images.PullSecret)
			continue
		}
		require.ErrorIs(t, err, &fault.Fault{Code: code})
	}
}

func TestAnAccountIsOfARegistry(t *testing.T) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var f Flags
	f.AddFlags(set)
	require.NoError(t, set.Parse([]string{"--bundle", t.TempDir(), "--registry-auth", "x"}))
	_, err := f.Pins(&config.Config{})
	require.ErrorContains(t, err, "--registry-auth goes with --lock")
}
