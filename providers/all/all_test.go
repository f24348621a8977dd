package all_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/all"
)

func TestSections(t *testing.T) {
	for _, c := range []struct{ provider, section, field string }{
		{"aws", `{"region":"eu-central-1"}`, ""},
		{"aws", `{"region":"us-gov-west-1","account":"123456789012","cidr":"10.0.0.0/18","vpcId":"vpc-0123456789abcdef0","tag":"x","roles":["a+b@c"],"jumpHost":{"allow":["192.0.2.0/24"]}}`, ""},
		{"aws", `{}`, "region"},
		{"aws", `{"region":"Frankfurt"}`, "region"},
		{"aws", `{"region":"eu-central-1","account":"12345"}`, "account"},
		{"aws", `{"region":"eu-central-1","vpcId":"x"}`, "vpcId"},
		{"aws", `{"region":"eu-central-1","cidr":"10.0.0.1/16"}`, "cidr"},
		{"aws", `{"region":"eu-central-1","cidr":"10.0.0.0/24"}`, "cidr"},
		{"aws", `{"region":"eu-central-1","cidr":"2001:db8::/16"}`, "cidr"},
		{"aws", `{"region":"eu-central-1","roles":["a b"]}`, "roles[0]"},
		{"aws", `{"region":"eu-central-1","jumpHost":{"allow":["0.0.0.0"]}}`, "jumpHost.allow[0]"},
		{"aws", `{"region":"eu-central-1","regoin":1}`, "regoin"},
		{"azure", `{"subscription":"01234567-89ab-cdef-0123-456789abcdef","location":"westeurope"}`, ""},
		{"azure", `{"subscription":"01234567-89ab-cdef-0123-456789abcdef","location":"eastus2","resourceGroup":"a.b(c)","cidr":"10.0.0.0/8"}`, ""},
		{"azure", `{"location":"westeurope"}`, "subscription"},
		{"azure", `{"subscription":"01234567-89ab-cdef-0123-456789abcdef","location":"West Europe"}`, "location"},
		{"azure", `{"subscription":"01234567-89ab-cdef-0123-456789abcdef","location":"westeurope","resourceGroup":"a."}`, "resourceGroup"},
		{"azure", `{"subscription":"01234567-89ab-cdef-0123-456789abcdef","location":"westeurope","cidr":"x"}`, "cidr"},
		{"onprem", `{"kubeconfig":"env:KUBECONFIG_TEXT","context":"a","storageClass":"fast","addresses":["192.0.2.1","192.0.2.0/28","192.0.2.10-192.0.2.20"]}`, ""},
		{"onprem", `{}`, "kubeconfig"},
		{"onprem", `{"kubeconfig":"apiVersion: v1"}`, "kubeconfig"},
		{"onprem", `{"kubeconfig":"file:x","context":"a\nb"}`, "context"},
		{"onprem", `{"kubeconfig":"file:x","storageClass":"Fast"}`, "storageClass"},
		{"onprem", `{"kubeconfig":"file:x","addresses":["192.0.2.20-192.0.2.10"]}`, "addresses[0]"},
		{"onprem", `{"kubeconfig":"file:x","addresses":["::1"]}`, "addresses[0]"},
		{"existing", `{"kubeconfig":"env:KUBECONFIG_TEXT","registry":"r.example.com/slipway"}`, ""},
		{"existing", `{}`, "kubeconfig"},
		{"existing", `{"kubeconfig":"apiVersion: v1"}`, "kubeconfig"},
		{"existing", `{"kubeconfig":"file:x","registry":"http://r.example.com"}`, "registry"},
		{"local", `{}`, ""},
		{"local", `{"ports":[0]}`, "ports[0]"},
	} {
		problems := all.All().Options().Section(c.provider, json.RawMessage(c.section))
		if c.field == "" {
			require.Empty(t, problems, c.section)
			continue
		}
		require.Len(t, problems, 1, c.section)
		require.Equal(t, c.field, problems[0].Field, c.section)
		require.NotEmpty(t, problems[0].Got)
		require.NotEmpty(t, problems[0].Want)
		require.NotContains(t, problems[0].String(), "apiVersion: v1", "it may be a secret")
	}
}

func TestAProviderThatCanOnlyBeConfigured(t *testing.T) {
	require.Subset(t, all.All().Names(), []string{"aws", "azure", "existing", "local", "onprem"})
	_, err := all.All().Get("aws")
	require.ErrorIs(t, err, &fault.Fault{Code: providers.CodeUnknown})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.EqualError(t, err, `choose provider "aws": installing there is not supported yet; supported: existing, local`)
	_, err = all.All().Get("local")
	require.NoError(t, err)
}
