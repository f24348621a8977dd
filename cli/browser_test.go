package cli

import (
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
)

// TestWayToABrowser: with the configuration and the hosts in docs/local-cluster.md,
// every link of the reference platform opens.
func TestWayToABrowser(t *testing.T) {
	page, err := os.ReadFile("../docs/local-cluster.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`printf '(apiVersion: slipway\.sh/v1\\nlocal: .*)\\n' > web\.yaml`).FindSubmatch(page)
	require.NotNil(t, found)
	registry := program().Providers
	cfg, err := config.Load([]byte(strings.ReplaceAll(string(found[1]), `\n`, "\n")), registry.Options())
	require.NoError(t, err)
	ports := local.Provider{}.Local(providers.Deployment{Section: cfg.Section("local")}).Ports

	files, err := reference.Release(cfg.Platform.Release)
	require.NoError(t, err)
	release, err := platform.Load(files)
	require.NoError(t, err)
	require.NotEmpty(t, release.Links)
	for _, l := range release.Links {
		u, err := url.Parse(l.URL(cfg.Global.Domain, cfg.Global.Name))
		require.NoError(t, err)
		port, err := strconv.Atoi(l.Service[strings.LastIndexByte(l.Service, ':')+1:])
		require.NoError(t, err)
		require.Contains(t, ports, port, l.Name)
		require.Regexp(t, `echo '127\.0\.0\.1 .*`+regexp.QuoteMeta(u.Host)+`.*' >> /etc/hosts`, string(page))
		require.Contains(t, string(page), u.String())
	}
}
