package local_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/conformance"
	"github.com/slipway-sh/slipway/providers/local"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Suite{
		Provider: local.Provider{},
		Valid:    []string{`{}`, `{"ports": [443, 8080]}`, `{"registryMirror": "http://192.0.2.1:5000/slipway"}`, `{"bind": "0.0.0.0"}`, `{"bind": "::1"}`, `{"bind": "192.0.2.1"}`},
		Invalid: []string{`{"ports": [0]}`, `{"ports": [6443]}`, `{"apiPort": 70000}`, `{"apiPort": -1}`, `{"ports": [7443], "apiPort": 7443}`, `{"ports": [6444]}`, `{"ports": [80, 80]}`, `{"ports": "80"}`, `{"port": [80]}`,
			`{"bind": "localhost"}`, `{"bind": "192.0.2.1:80"}`, `{"bind": "fe80::1%eth0"}`, `{"bind": "224.0.0.1"}`, `{"bind": "::ffff:0.0.0.0/96"}`,
			`{"registryMirror": "registry:5000"}`, `{"registryMirror": "ftp://registry"}`, `{"registryMirror": "https://me:secret@registry"}`},
	})
}

func TestEveryProblemIsReported(t *testing.T) {
	problems := local.Provider{}.Validate(json.RawMessage(`{"ports": [0, 70000, 443, 443], "cpu": 2}`))
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	require.ElementsMatch(t, []string{"cpu", "ports[0]", "ports[1]", "ports[3]"}, fields)
}

func TestNodePublishesTheConfiguredPorts(t *testing.T) {
	spec := local.Provider{}.Local(providers.Deployment{Section: json.RawMessage(`{"ports": [443], "registryMirror": "https://r"}`)})
	require.Equal(t, providers.LocalCluster{Bind: "127.0.0.1", Ports: []int{443}, APIPort: 6443, Mirror: "https://r"}, spec)
	for bind, host := range map[string]string{"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1"} {
		spec := local.Provider{}.Local(providers.Deployment{Section: json.RawMessage(`{"bind": "` + bind + `"}`)})
		require.Equal(t, bind, spec.Bind)
		require.Equal(t, host, spec.Host())
	}
	require.Equal(t, "127.0.0.1", providers.LocalCluster{}.Host())
}
