package conductor

import (
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestAccessToTheState(t *testing.T) {
	node := contract.Environment{Cluster: providers.Cluster{Local: &providers.LocalCluster{}}}
	none := State{}.access(node, "")
	require.Empty(t, none.Env, "the volume needs none")
	require.Empty(t, none.Secrets)
	require.Empty(t, none.Files)

	id, key, file := &dagger.Secret{}, &dagger.Secret{}, &dagger.Secret{}
	s := State{URL: "s3://bucket?prefix=blue", Credentials: map[string]*dagger.Secret{"AWS_ACCESS_KEY_ID": id}}
	a := s.access(node, "")
	require.Equal(t, map[string]string{contract.StateURLVariable: s.URL, contract.StateMakeKeyVariable: "1"}, a.Env)
	require.Same(t, id, a.Secrets["AWS_ACCESS_KEY_ID"])
	require.Empty(t, a.Files)

	a = s.access(contract.Environment{}, "")
	require.NotContains(t, a.Env, contract.StateMakeKeyVariable, "a key on one engine opens nothing on the next")
	s.Key = key
	a = s.access(node, "")
	require.NotContains(t, a.Env, contract.StateMakeKeyVariable)
	require.Same(t, key, a.Files[contract.StateKeyFile])

	s.Credentials = map[string]*dagger.Secret{"GOOGLE_APPLICATION_CREDENTIALS": file}
	a = s.access(node, "")
	require.Empty(t, a.Secrets)
	require.Equal(t, credentialsFile, a.Env["GOOGLE_APPLICATION_CREDENTIALS"])
	require.Same(t, file, a.Files[credentialsFile])
}

func TestContainersTellWhoStartedThem(t *testing.T) {
	require.Empty(t, State{}.access(contract.Environment{}, "").Env, "where no other process works")
	require.Equal(t, map[string]string{contract.OriginVariable: "x"}, State{}.access(contract.Environment{}, "x").Env)
	s := State{URL: "s3://bucket"}
	require.Equal(t, map[string]string{contract.StateURLVariable: s.URL, contract.OriginVariable: "x"}, s.access(contract.Environment{}, "x").Env)
}
