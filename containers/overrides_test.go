package containers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

func sha(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// What a chart names is used from where the run has it, and the node is told.
func TestOverrides(t *testing.T) {
	b := &bundle.Bundle{}
	b.Index.Images = []bundle.Image{
		{Name: "gitea", Ref: "slipway.local/gitea:1", Digest: sha("1")},
		{Name: "redis", Ref: "slipway.local/redis:7.0", Digest: sha("2"), StandsFor: []string{"public.ecr.aws/docker/library/redis:8"}},
		{Name: "quay.io/web:1", Ref: "quay.io/web:1", Digest: sha("3"), Index: sha("4"), Archive: "images/added/4.tar", StandsFor: []string{"quay.io/web:1"}},
	}
	ours := &Images{}
	ours.fromBundle(b)
	require.Equal(t, "slipway.local/redis@"+sha("2"), ours.StandsFor["public.ecr.aws/docker/library/redis:8"])
	require.Equal(t, "quay.io/web@"+sha("3"), ours.StandsFor["quay.io/web@"+sha("4")])
	require.NotContains(t, ours.StandsFor, "slipway.local/gitea:1")
	var told []map[string]any
	require.NoError(t, json.Unmarshal([]byte(ours.overridesText()), &told))
	require.Equal(t, []map[string]any{
		{"image": "slipway.local/redis:7.0", "digest": sha("2"), "standsFor": []any{"public.ecr.aws/docker/library/redis:8"}},
		{"image": "quay.io/web:1", "digest": sha("3"), "index": sha("4"), "standsFor": []any{"quay.io/web:1"}},
	}, told)

	of := lock.Pushed{Index: b.Index}
	pulled, _ := pushed(of, "registry.example.com/team")
	require.Equal(t, "registry.example.com/team/redis@"+sha("2"), pulled.StandsFor["public.ecr.aws/docker/library/redis:8"])
	require.Equal(t, "registry.example.com/team/quay.io-web@"+sha("3"), pulled.StandsFor["quay.io/web@"+sha("4")])
	require.Equal(t, []lock.Override{
		{Path: "redis", Digest: sha("2"), StandsFor: []string{"public.ecr.aws/docker/library/redis:8"}},
		{Path: "quay.io-web", Digest: sha("3"), Index: sha("4"), StandsFor: []string{"quay.io/web:1"}},
	}, pulled.Overrides)
	delete(pulled.Refs, "gitea")
	delete(pulled.Registry, "gitea")
	refs, rewrite := pulled.In(true)
	require.Equal(t, map[string]string{"redis": "slipway.local/redis@" + sha("2"), "public.ecr.aws/docker/library/redis:8": "slipway.local/redis@" + sha("2"), "public.ecr.aws/docker/library/redis@" + sha("2"): "slipway.local/redis@" + sha("2")}, refs)
	require.Empty(t, rewrite, "a node of Slipway's own maps them")
	refs, rewrite = pulled.In(false)
	require.Equal(t, "registry.example.com/team/redis@"+sha("2"), refs["redis"])
	require.Equal(t, refs["redis"], refs["public.ecr.aws/docker/library/redis:8"])
	require.Len(t, refs, 3, "and nothing that is by no short name")
	require.Equal(t, pulled.StandsFor, rewrite)
	require.Len(t, pulled.StandsFor, len(ours.StandsFor), "a platform may move from one to the other")
}

// TestANodeIsToldOfOverrides, and of nothing where there are none.
func TestANodeIsToldOfOverrides(t *testing.T) {
	client := engine(t, func([]string) (any, string) { return nil, "not asked" })
	id := func(i Images) string {
		i.Node = client.Container()
		return Open(client, "dev", &i, Access{}).Cluster("", APIPort).ID()
	}
	plain := id(Images{})
	require.Equal(t, plain, id(Images{}))
	require.NotEqual(t, plain, id(Images{Overrides: []lock.Override{{Image: "a", Digest: sha("1"), StandsFor: []string{"b"}}}}))
}
