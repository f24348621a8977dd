package installed_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
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
			err := c.record.Check(c.release, installed.How{Upgrade: c.upgrade})
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

func TestWhatAnUnfinishedUpgradeLetsBegin(t *testing.T) {
	of := func(version string, from ...string) *platform.Release {
		return &platform.Release{Name: "shop", Version: version, UpgradableFrom: from, Data: []platform.Data{{Name: "orders"}}}
	}
	between := installed.Record{Platform: "shop", Version: "1.0.0", Toward: "1.1.0", Backup: "b1", Style: contract.InPlace}
	back := between
	back.Rollback = "b1"
	ended := installed.Record{Platform: "shop", Version: "1.1.0", Backup: "b1", Style: contract.Graceful}
	upgrade := func(c contract.Change) installed.How { return installed.How{Upgrade: true, Change: c} }
	to := func(backup string) installed.How { return installed.How{Change: contract.Change{Backup: backup}} }
	for name, c := range map[string]struct {
		record  installed.Record
		release *platform.Release
		how     installed.How
		code    fault.Code
		fix     string
	}{
		"an install over an older one that has no data": {record: installed.Record{Platform: "shop", Version: "1.0.0"}, release: of("1.1.0", "1.0.0"), code: installed.CodeNotOver, fix: "slipway upgrade --to 1.1.0"},
		"an install in the middle":                      {record: between, release: of("1.1.0", "1.0.0"), code: installed.CodeUnfinished, fix: "go on with it, with the --platform that it was begun with, if any: slipway upgrade --resume; or go back to 1.0.0: slipway rollback"},
		"an install of the old one in the middle":       {record: between, release: of("1.0.0"), code: installed.CodeUnfinished, fix: "slipway rollback"},
		"forward from the middle":                       {record: between, release: of("1.1.1", "1.0.0", "1.1.0"), how: upgrade(contract.Change{}), code: installed.CodeUnfinished, fix: "with the --platform that it was begun with, if any: slipway upgrade --resume; or go back to 1.0.0: slipway rollback"},
		"the upgrade again":                             {record: between, release: of("1.1.0", "1.0.0"), how: upgrade(contract.Change{})},
		"the upgrade goes on":                           {record: between, release: of("1.1.0", "1.0.0"), how: upgrade(contract.Change{Resume: true})},
		"in another style":                              {record: between, release: of("1.1.0", "1.0.0"), how: upgrade(contract.Change{Style: contract.Graceful}), code: installed.CodeUnfinished, fix: "--resume"},
		"in its style":                                  {record: between, release: of("1.1.0", "1.0.0"), how: upgrade(contract.Change{Style: contract.InPlace})},
		"nothing goes on":                               {record: ended, release: of("1.2.0", "1.1.0"), how: upgrade(contract.Change{Resume: true}), code: contract.CodeNothing, fix: "slipway upgrade --to VERSION"},
		"back":                                          {record: between, release: of("1.0.0"), how: to("b1")},
		"back once more":                                {record: back, release: of("1.0.0"), how: to("b1")},
		"back to another while one goes on":             {record: back, release: of("0.9.0"), how: to("b0"), code: installed.CodeUnfinished, fix: "slipway rollback --backup b1"},
		"back from one that ended well":                 {record: ended, release: of("1.0.0"), how: to("b1")},
		"back by another way that nobody named":         {record: ended, release: of("0.9.0"), how: to("b0"), code: contract.CodeNoBackup, fix: "slipway rollback --backup ID"},
		"back by another way":                           {record: ended, release: of("0.9.0"), how: installed.How{Change: contract.Change{Backup: "b0", Named: true}}},
		"back, on a cluster that has nothing":           {release: of("1.0.0"), how: to("b1")},
		"back to what is installed":                     {record: ended, release: of("1.1.0"), how: to("b2"), code: platform.CodeSame, fix: "slipway install, with a configuration that names it"},
		"an install of what was before an upgrade":      {record: ended, release: of("1.0.0"), code: installed.CodeNotOver, fix: "platform.release in the configuration, or --platform; to go back"},
		"an upgrade while a rollback goes on":           {record: back, release: of("1.1.0", "1.0.0"), how: upgrade(contract.Change{Resume: true}), code: installed.CodeUnfinished, fix: "slipway rollback --backup b1"},
		"an install while a rollback goes on":           {record: back, release: of("1.0.0"), code: installed.CodeUnfinished, fix: "slipway rollback --backup b1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.record.Check(c.release, c.how)
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			f, _ := errors.AsType[*fault.Fault](err)
			require.Equal(t, fault.Usage, f.Class)
			require.Contains(t, f.Fix, c.fix)
		})
	}
}

// TestTheRecordSurvives: what an upgrade and a rollback note is there again, and goes when it
// counts no more.
func TestTheRecordSurvives(t *testing.T) {
	api := kubetest.Serve(t)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	read := func() installed.Record {
		t.Helper()
		rec, err := installed.Read(t.Context(), c)
		require.NoError(t, err)
		return rec
	}
	rec := installed.Record{Platform: "shop", Version: "1.0.0", Toward: "1.1.0", Backup: "b1", Style: contract.InPlace}
	rec = rec.Note("split", false).Note("split", true).Note("trim", false)
	require.NoError(t, rec.Keep(t.Context(), c, "d"))
	require.Equal(t, rec, read())
	require.True(t, read().Has("split"))
	require.False(t, read().Has("trim"), "it has only begun")

	next := &platform.Release{Name: "shop", Version: "1.1.0"}
	require.NoError(t, read().Begin(t.Context(), c, "d", next))
	require.Equal(t, rec, read(), "an upgrade that goes on")
	require.NoError(t, installed.End(t.Context(), c, "d", next))
	ended := installed.Record{Platform: "shop", Version: "1.1.0", Backup: "b1", Style: contract.InPlace, Migrations: rec.Migrations}
	require.Equal(t, ended, read(), "one can go back from it")
	require.NoError(t, read().Begin(t.Context(), c, "d", next))
	require.NoError(t, installed.End(t.Context(), c, "d", next))
	require.Equal(t, ended, read(), "another install changes nothing")

	back := ended.Forget("trim")
	back.Rollback, back.Saved, back.Replaced = "b1", "b2", []string{"orders", "words"}
	require.NoError(t, back.Keep(t.Context(), c, "d"))
	old := &platform.Release{Name: "shop", Version: "1.0.0"}
	require.NoError(t, read().Begin(t.Context(), c, "d", old))
	require.Equal(t, back, read(), "a rollback that goes on")
	require.NoError(t, installed.End(t.Context(), c, "d", old))
	require.Equal(t, installed.Record{Platform: "shop", Version: "1.0.0"}, read())
}
