package conductor

import (
	"errors"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/engineconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// installOn conducts an install of one step on an engine with a policy, where the state is as
// stored says.
func installOn(t *testing.T, name string, limit int, stored string, change func(*Conductor)) (*report.Run, *engine, error) {
	t.Helper()
	c, e := conducted(t, map[string]any{
		"engine{name}": name, "localCache{reservedSpace}": limit, "localCache{maxUsedSpace}": 1, "localCache{minFreeSpace}": 0, `"slipway","state","show"`: stored,
		`"slipway","step","infrastructure/preflight"`: `{"status":"succeeded","output":{}}`, `"slipway","state","keep"`: "{}",
	})
	change(c)
	record, err := c.Conduct(t.Context(), Workflow{Name: config.Install, Wire: func(g *Graph) error {
		Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
		return nil
	}})
	return record, e, err
}

// TestAFirstInstallNeedsAnEngineThatKeepsVolumes: what is there already is only warned of.
func TestAFirstInstallNeedsAnEngineThatKeepsVolumes(t *testing.T) {
	same := func(*Conductor) {}
	record, e, err := installOn(t, "0123456789ab", 0, `{"record":{"id":"r0"}}`, same)
	require.Nil(t, record)
	require.ErrorIs(t, err, &fault.Fault{Code: codeMayGo})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "its cluster and all data in it, its state and the records of its runs: the engine collects cache volumes")
	require.ErrorContains(t, err, "1 bytes used at most")
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "write "+engineconfig.Text+" to "+engineconfig.File())
	require.Contains(t, f.Fix, "slipway install --ephemeral, or advanced.ephemeral: true in the configuration")
	require.Contains(t, f.Fix, "a bucket (state.url in the configuration) keeps the state, and not the cluster")
	require.NotContains(t, e.all(), `"hold"`, "nothing was started")

	for what, c := range map[string]struct {
		name   string
		limit  int
		change func(*Conductor)
	}{
		"of make engine": {engineconfig.Own, 0, same},
		"configured":     {"0123456789ab", engineconfig.Reserved, same},
		"it may be lost": {"0123456789ab", 0, func(c *Conductor) { c.opts.Ephemeral = true }},
	} {
		record, e, err := installOn(t, c.name, c.limit, "{}", c.change)
		require.NoError(t, err, what)
		require.Empty(t, record.Warnings, what)
		require.NotContains(t, e.all(), `"show"`, what)
	}

	_, _, err = installOn(t, "0123456789ab", 0, `{`, same)
	require.ErrorContains(t, err, "read the deployment's state", "whether there is a cluster is not known")
	require.NotErrorIs(t, err, &fault.Fault{Code: codeMayGo})
	record, _, err = installOn(t, "0123456789ab", 0, `{"cluster":true,"here":false}`, same)
	require.Nil(t, record)
	require.ErrorIs(t, err, &fault.Fault{Code: codeMayGo}, "on this engine it is the first")
	record, _, err = installOn(t, "0123456789ab", 0, `{"cluster":true,"here":true}`, same)
	require.NoError(t, err)
	require.Len(t, record.Warnings, 1)
	require.Contains(t, record.Warnings[0].Summary, "may throw away what deployment "+record.Deployment+" has on its volumes")
	require.Contains(t, record.Warnings[0].Fix, "which loses every deployment that it has")
}

// TestAKeyThatIsNowhereElseMayGo: with the state in a bucket, the volumes have the key of its
// secrets, unless somebody else has it.
func TestAKeyThatIsNowhereElseMayGo(t *testing.T) {
	const lost, give = "and the key of its secrets, which is nowhere else", "or give a key that you keep (state.key in the configuration, or --state-key)"
	refused := func(change func(*Conductor)) (said, fix string) {
		_, _, err := installOn(t, "0123456789ab", 0, "{}", func(c *Conductor) {
			c.opts.State.URL = "s3://bucket"
			change(c)
		})
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, codeMayGo, f.Code)
		require.Contains(t, f.Err.Error(), "its cluster and all data in it")
		require.NotContains(t, f.Fix, "a bucket (state.url", "it is in one")
		return f.Err.Error(), f.Fix
	}
	said, fix := refused(func(*Conductor) {})
	require.Contains(t, said, lost)
	require.Contains(t, fix, give)
	for who, change := range map[string]func(*Conductor){
		"who gave it":               func(c *Conductor) { c.opts.State.Key = new(dagger.Secret) },
		"the data folder of a user": func(c *Conductor) { c.Records.copies = &shelf{} },
	} {
		said, fix := refused(change)
		require.NotContains(t, said, lost, who)
		require.NotContains(t, fix, give, who)
	}
}

// TestWithoutVolumesNothingMayGo: of a cluster that is there already, with its state in a
// bucket, the engine has nothing.
func TestWithoutVolumesNothingMayGo(t *testing.T) {
	c, e, _ := there(t, map[string]any{"engine{name}": "0123456789ab", "localCache": 0, `"slipway","state","show"`: "{}"}, nil)
	_, err := c.volumesMayGo(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: codeMayGo})
	require.ErrorContains(t, err, "its state and the records of its runs: ")
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "; or keep the state in a bucket")
	asked := e.all()
	c.opts.State.URL = "s3://bucket"
	warnings, err := c.volumesMayGo(t.Context())
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, asked, e.all())
}

// TestWhoIsNotToldIsWarned: dagger call cannot ask the engine for its policy.
func TestWhoIsNotToldIsWarned(t *testing.T) {
	c, e := conducted(t, map[string]any{"engine{name}": "0123456789ab"})
	e.problems = map[string]string{"localCache": "only the main client can call this function"}
	warnings, err := c.volumesMayGo(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0].Summary, "cannot be asked from within dagger call")
	require.NotContains(t, e.all(), `"show"`)
}
