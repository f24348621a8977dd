package conductor

import (
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestAccessToTheState(t *testing.T) {
	require.Equal(t, containers.Access{}, State{}.access(contract.Site{Node: &providers.NodeSpec{}}), "the volume needs none")

	id, key, file := &dagger.Secret{}, &dagger.Secret{}, &dagger.Secret{}
	s := State{URL: "s3://bucket?prefix=blue", Credentials: map[string]*dagger.Secret{"AWS_ACCESS_KEY_ID": id}}
	a := s.access(contract.Site{Node: &providers.NodeSpec{}})
	require.Equal(t, map[string]string{contract.StateURLVariable: s.URL, contract.StateMakeKeyVariable: "1"}, a.Env)
	require.Same(t, id, a.Secrets["AWS_ACCESS_KEY_ID"])
	require.Empty(t, a.Files)

	a = s.access(contract.Site{})
	require.NotContains(t, a.Env, contract.StateMakeKeyVariable, "a key on one engine opens nothing on the next")
	s.Key = key
	a = s.access(contract.Site{Node: &providers.NodeSpec{}})
	require.NotContains(t, a.Env, contract.StateMakeKeyVariable)
	require.Same(t, key, a.Files[contract.StateKeyFile])

	s.Credentials = map[string]*dagger.Secret{"GOOGLE_APPLICATION_CREDENTIALS": file}
	a = s.access(contract.Site{Node: &providers.NodeSpec{}})
	require.Empty(t, a.Secrets)
	require.Equal(t, credentialsFile, a.Env["GOOGLE_APPLICATION_CREDENTIALS"])
	require.Same(t, file, a.Files[credentialsFile])
}

func TestContainersTellWhoStartedThem(t *testing.T) {
	require.Equal(t, containers.Access{}, withOrigin(containers.Access{}, ""), "where no other process works")
	given := containers.Access{Env: map[string]string{"A": "a"}}
	require.Equal(t, map[string]string{"A": "a", contract.OriginVariable: "x"}, withOrigin(given, "x").Env)
	require.Len(t, given.Env, 1)
	require.Equal(t, map[string]string{contract.OriginVariable: "x"}, withOrigin(containers.Access{}, "x").Env)
}
