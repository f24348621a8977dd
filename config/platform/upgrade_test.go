package platform_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

func TestRoute(t *testing.T) {
	all := []*platform.Release{
		{Version: "1.0.0"},
		{Version: "1.1.0", UpgradableFrom: []string{"1.0.0"}},
		{Version: "1.2.0", UpgradableFrom: []string{"1.1.0", "1.0.0"}},
		{Version: "2.0.0", UpgradableFrom: []string{"1.1.0", "1.2.0"}},
		{Version: "3.0.0"},
	}
	for name, c := range map[string]struct {
		from, to string
		over     []string
		says     string
	}{
		"direct":              {from: "1.0.0", to: "1.1.0", over: []string{"1.1.0"}},
		"the same":            {from: "1.0.0", to: "1.0.0"},
		"the shortest":        {from: "1.0.0", to: "1.2.0", over: []string{"1.2.0"}},
		"through another":     {from: "1.0.0", to: "2.0.0", over: []string{"1.1.0", "2.0.0"}},
		"back":                {from: "2.0.0", to: "1.0.0", says: "1.0.0 is older than 2.0.0"},
		"not known":           {from: "1.0.0", to: "1.5.0", says: "there is no release 1.5.0; there are 1.0.0, 1.1.0, 1.2.0, 2.0.0, 3.0.0"},
		"from nowhere":        {from: "1.0.0", to: "3.0.0", says: "release 3.0.0 says of no other one that it can be upgraded"},
		"from an unknown one": {from: "0.9.0", to: "2.0.0", says: "2.0.0 can be upgraded from 1.1.0, 1.2.0 only"},
	} {
		t.Run(name, func(t *testing.T) {
			over, err := platform.Route(all, c.from, c.to)
			if c.says != "" {
				require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeNoRoute})
				require.ErrorContains(t, err, c.says)
				f, _ := errors.AsType[*fault.Fault](err)
				require.NotEqual(t, "name a release that can be installed over "+c.from, f.Fix, "there is none")
				return
			}
			require.NoError(t, err)
			var versions []string
			for _, r := range over {
				versions = append(versions, r.Version)
			}
			require.Equal(t, c.over, versions)
		})
	}
}

func TestOlder(t *testing.T) {
	require.True(t, platform.Older("1.9.0", "1.10.0"))
	require.True(t, platform.Older("1.0.0-rc.1", "1.0.0"))
	require.False(t, platform.Older("1.0.0", "1.0.0"))
	require.False(t, platform.Older("", "1.0.0"))
}
