package providers_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
)

type named string

func (n named) Name() string { return string(n) }
func (n named) Validate(json.RawMessage) []config.Problem {
	return []config.Problem{{Field: "region", Want: string(n)}}
}
func (n named) Settings() any                                          { return struct{}{} }
func (n named) Terraform(providers.Deployment) (providers.Root, error) { return providers.Root{}, nil }
func (n named) Cluster(providers.Deployment) (providers.Cluster, error) {
	return providers.Cluster{}, nil
}

func TestUnknownProviderListsTheKnown(t *testing.T) {
	_, err := providers.NewRegistry(named("onprem"), named("local")).Get("lcoal")
	require.EqualError(t, err, `choose provider "lcoal": no provider has that name; known are: local, onprem`)
	require.ErrorIs(t, err, &fault.Fault{Code: providers.CodeUnknown})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
}

func TestGetReturnsTheNamedProvider(t *testing.T) {
	p, err := providers.NewRegistry(named("onprem"), named("local")).Get("local")
	require.NoError(t, err)
	require.Equal(t, named("local"), p)
}

func TestDuplicateAndNamelessProvidersPanic(t *testing.T) {
	require.PanicsWithValue(t, "provider a is registered twice", func() { providers.NewRegistry(named("a"), named("a")) })
	require.PanicsWithValue(t, "a provider has no name", func() { providers.NewRegistry(named("")) })
}

func TestValidateAsksTheNamedProvider(t *testing.T) {
	r := providers.NewRegistry(named("a"), named("b"))
	require.Equal(t, "b", r.Options().Section("b", nil)[0].Want)
	require.Empty(t, r.Options().Section("c", nil))
}
