package installed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/installed"
)

func TestWhatMayBeInstalledOverWhat(t *testing.T) {
	of := func(version string, from ...string) *platform.Release {
		return &platform.Release{Name: "shop", Version: version, UpgradableFrom: from}
	}
	has := func(version, toward string) installed.Record {
		return installed.Record{Platform: "shop", Version: version, Toward: toward}
	}
	for name, c := range map[string]struct {
		record  installed.Record
		release *platform.Release
		upgrade bool
		code    fault.Code
		says    string
	}{
		"nothing is there":                      {release: of("1.0.0")},
		"the same":                              {record: has("1.0.0", ""), release: of("1.0.0")},
		"an upgrade to the same":                {record: has("1.0.0", ""), release: of("1.0.0"), upgrade: true, code: platform.CodeSame},
		"a direct upgrade":                      {record: has("1.0.0", ""), release: of("1.1.0", "1.0.0"), upgrade: true},
		"another platform":                      {record: installed.Record{Platform: "bar", Version: "1.0.0"}, release: of("1.0.0"), code: installed.CodeNotOver, says: "another platform, bar"},
		"an older one":                          {record: has("1.1.0", ""), release: of("1.0.0"), code: installed.CodeNotOver, says: "release 1.1.0 is installed, and an older one"},
		"a jump over one that is required":      {record: has("1.0.0", ""), release: of("2.0.0", "1.1.0", "1.2.0"), code: installed.CodeNotOver, says: "(upgradableFrom: 1.1.0, 1.2.0)"},
		"one that says nothing":                 {record: has("1.0.0", ""), release: of("2.0.0"), code: installed.CodeNotOver, says: "(upgradableFrom: none)"},
		"a first install goes on":               {record: has("", "1.0.0"), release: of("1.0.0")},
		"a first install that another ends":     {record: has("", "1.0.0"), release: of("1.0.1")},
		"an upgrade goes on":                    {record: has("1.0.0", "1.1.0"), release: of("1.1.0", "1.0.0"), upgrade: true},
		"back from one that is not finished":    {record: has("1.0.0", "1.1.0"), release: of("1.0.0"), code: installed.CodeUnfinished, says: "from 1.0.0 to 1.1.0"},
		"aside from one that is not finished":   {record: has("1.0.0", "1.1.0"), release: of("1.2.0", "1.0.0"), code: installed.CodeUnfinished},
		"forward from one that is not finished": {record: has("1.0.0", "1.1.0"), release: of("1.1.1", "1.0.0", "1.1.0")},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.record.Check(c.release, c.upgrade)
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			require.ErrorContains(t, err, c.says)
			require.Equal(t, fault.Usage, fault.ClassOf(err))
		})
	}
}
