package state_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// called is a place where somebody works on deployment demo.
func called(t *testing.T, p state.Place, c contract.Caller) state.Place {
	t.Helper()
	c.Deployment = "demo"
	text, err := json.Marshal(c)
	require.NoError(t, err)
	p.Caller = string(text)
	return p
}

// run makes a run of the caller at p, which must not be refused, and returns its claim.
func run(t *testing.T, p state.Place, s *store.Store, id string) contract.Claim {
	t.Helper()
	require.NoError(t, p.CheckClaim(t.Context(), s))
	lease := hold(t, s, id)
	_, w, err := p.Work(t.Context(), s, id)
	require.NoError(t, err)
	_, err = state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	was, err := state.ClaimOf(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, p.Claim(t.Context(), w, was, lock.Holder{User: "u", Host: "h", Run: id}))
	require.NoError(t, w.End())
	require.NoError(t, lease.Release(t.Context()))
	claim, err := state.ClaimOf(t.Context(), s)
	require.NoError(t, err)
	return claim
}

// names are those of the owners of a deployment.
func names(c contract.Claim) (out []string) {
	for _, o := range c.Owners {
		out = append(out, o.Name)
	}
	return out
}

// TestADeploymentIsItsOwners: others are refused, until they say that it is to be theirs, too.
func TestADeploymentIsItsOwners(t *testing.T) {
	p := state.Place{Volume: t.TempDir()}
	s := open(t, p.Volume)
	nobody, alice, bob := p, called(t, p, contract.Caller{Owner: "alice@laptop"}), called(t, p, contract.Caller{Owner: "bob@desk"})
	require.Empty(t, names(run(t, nobody, s, "r0")), "as in CI")
	first := run(t, alice, s, "r1")
	require.Equal(t, []string{"alice@laptop"}, names(first))
	require.WithinDuration(t, time.Now(), first.Owners[0].Since, time.Minute)
	require.Equal(t, first, run(t, alice, s, "r2"))
	require.Equal(t, first, run(t, nobody, s, "r3"), "who does not say is not asked")

	before := all(t, s)
	require.Contains(t, before, "claims/000000000002.json")
	err := bob.CheckClaim(t.Context(), s)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeTheirs})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "deployment demo on this engine is alice@laptop's, since "+first.Owners[0].Since.Format(time.RFC3339)+"; you are bob@desk; nothing was changed")
	f, _ := errors.AsType[*fault.Fault](err)
	for _, part := range []string{"--name", "--join", "--owner", "SLIPWAY_OWNER", "advanced.owner"} {
		require.Contains(t, f.Fix, part)
	}
	record := &report.Run{ID: "r3", Workflow: "install", Owner: "alice@laptop", Started: time.Unix(0, 0)}
	text, err := record.Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s, "r3", map[string][]byte{report.RecordFile: text}))
	require.NoError(t, state.PutLatest(t.Context(), s, 4, "r3"))
	require.ErrorContains(t, bob.CheckClaim(t.Context(), s), "; its last run was install r3 of 1970-01-01T00:00:00Z, of alice@laptop; you are")

	joins := called(t, p, contract.Caller{Owner: "bob@desk", Join: true})
	require.Equal(t, []string{"alice@laptop", "bob@desk"}, names(run(t, joins, s, "r5")))
	require.Equal(t, []string{"alice@laptop", "bob@desk"}, names(run(t, bob, s, "r6")), "once is enough")
	require.Equal(t, []string{"alice@laptop", "bob@desk"}, names(run(t, alice, s, "r7")))
	require.ErrorContains(t, called(t, p, contract.Caller{Owner: "carol"}).CheckClaim(t.Context(), s), "is alice@laptop and bob@desk's, since")
	require.NoFileExists(t, filepath.Join(p.Volume, "engine"))

	p.Caller = "{"
	require.ErrorContains(t, p.CheckClaim(t.Context(), s), "decode SLIPWAY_CALLER")
}

// TestAClusterIsOnOneEngine: another one that has the bucket leaves it alone, until it is made
// the deployment's.
func TestAClusterIsOnOneEngine(t *testing.T) {
	bucket := t.TempDir()
	a, s := machine(t, bucket)
	b := state.Place{Volume: t.TempDir(), URL: a.URL}
	caller := contract.Caller{Node: true}
	a, b = called(t, a, caller), called(t, b, caller)
	require.NoError(t, b.CheckClaim(t.Context(), s), "there is nothing yet")
	on := run(t, a, s, "r1").Engine
	require.Equal(t, []string{"u@h", "r1"}, []string{on.By, on.Run})
	require.Equal(t, on, run(t, a, s, "r2").Engine)

	refused := func(p state.Place, by string) {
		t.Helper()
		before := all(t, s)
		err := p.CheckClaim(t.Context(), s)
		require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeElsewhere})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, "the cluster of deployment demo is on another engine, that of run "+by+" of u@h (")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "slipway install --here")
		require.Equal(t, before, all(t, s))
	}
	refused(b, "r1")
	other := b
	other.Caller = called(t, b, contract.Caller{}).Caller
	require.NoError(t, other.CheckClaim(t.Context(), s), "a cluster that no engine has is reached from each")

	here := called(t, b, contract.Caller{Node: true, Here: true})
	now := run(t, here, s, "r4").Engine
	require.Equal(t, "r4", now.Run)
	require.NotEqual(t, on.ID, now.ID)
	refused(a, "r4")
	require.Equal(t, now, run(t, b, s, "r5").Engine, "once is enough")
	_, err := os.Stat(filepath.Join(bucket, "engine"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAClusterOfAnEarlierVersion is on the engine that has the access to it.
func TestAClusterOfAnEarlierVersion(t *testing.T) {
	a, s := machine(t, t.TempDir())
	b := called(t, state.Place{Volume: t.TempDir(), URL: a.URL}, contract.Caller{Node: true})
	a = called(t, a, contract.Caller{Node: true})
	writeKubeconfig(t, a, canary)
	_, err := a.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	require.ErrorIs(t, b.CheckClaim(t.Context(), s), &fault.Fault{Code: contract.CodeElsewhere})
	require.NotNil(t, run(t, a, s, "r1").Engine, "and from now on it is noted")
	require.ErrorIs(t, b.CheckClaim(t.Context(), s), &fault.Fault{Code: contract.CodeElsewhere})
}

// TestAClusterInABucketsStateIsLost where this engine has had it, and its volume is empty.
func TestAClusterInABucketsStateIsLost(t *testing.T) {
	a, s := machine(t, t.TempDir())
	a = called(t, a, contract.Caller{Node: true})
	a.Node = t.TempDir()
	run(t, a, s, "r1")
	writeKubeconfig(t, a, canary)
	_, err := a.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	lost := func(p state.Place) bool {
		t.Helper()
		is, err := p.ClusterLost(t.Context(), s)
		require.NoError(t, err)
		return is
	}
	require.True(t, lost(a))
	fresh := state.Place{Volume: t.TempDir(), URL: a.URL, Node: a.Node}
	require.False(t, lost(called(t, fresh, contract.Caller{Node: true})), "it is on another engine")
	require.NoError(t, os.MkdirAll(filepath.Join(a.Node, "pki"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(a.Node, "pki/ca.crt"), nil, 0o600))
	require.False(t, lost(a))
}
