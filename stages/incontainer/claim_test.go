package incontainer

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/secret"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// called is a state in a bucket, which is a directory, on which somebody works.
func called(t *testing.T, bucket string, c contract.Caller) *State {
	t.Helper()
	c.Deployment = "demo"
	text, err := json.Marshal(c)
	require.NoError(t, err)
	p := state.Place{Volume: t.TempDir(), URL: "file://" + bucket, MakeKey: true, Caller: string(text)}
	s, err := p.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &State{place: p, store: s, errw: io.Discard}
}

// begin has a run hold the lock as long as open lasts, which opens the state.
func (s *State) begin(t *testing.T, run string) (contract.Opened, error) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Hold(t.Context(), stop, lock.Holder{User: "u", Host: "h", Run: run, Workflow: "install"}, 0, 0)
	}()
	for {
		select {
		case err := <-ended:
			return contract.Opened{}, err
		case <-time.After(10 * time.Millisecond):
		}
		if _, err := lock.New(s.store, lock.Options{}).HeldBy(t.Context(), run); err == nil {
			break
		}
	}
	out := opened(t, func(file string) error {
		return s.Open(t.Context(), file, lock.Holder{User: "u", Host: "h", Run: run}, "demo", "")
	})
	close(stop)
	return out, <-ended
}

// locks are the generations of the lock.
func locks(t *testing.T, s *store.Store) []string {
	t.Helper()
	keys, err := s.List(t.Context(), "lock/")
	require.NoError(t, err)
	return keys
}

// TestADeploymentOfOthersIsNotLocked: whose it is not is refused before that.
func TestADeploymentOfOthersIsNotLocked(t *testing.T) {
	bucket := t.TempDir()
	alice := called(t, bucket, contract.Caller{Owner: "alice", Node: true})
	now, err := alice.begin(t, "r1")
	require.NoError(t, err)
	require.Nil(t, now.From)
	before := locks(t, alice.store)
	for code, c := range map[fault.Code]contract.Caller{
		contract.CodeTheirs:    {Owner: "bob"},
		contract.CodeElsewhere: {Owner: "alice", Node: true},
	} {
		other := called(t, bucket, c)
		_, err := other.begin(t, "r2")
		require.ErrorIs(t, err, &fault.Fault{Code: code})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.Equal(t, before, locks(t, alice.store))
		require.NoDirExists(t, filepath.Join(other.place.Volume, "runs"), "there is no trace of it")
		_, err = (&Preview{}).perform(t.Context(), other, contract.PreviewRequest{})
		require.ErrorIs(t, err, &fault.Fault{Code: code}, "a plan tells what the run would end with")
	}

	moved := called(t, bucket, contract.Caller{Owner: "alice", Node: true, Here: true})
	now, err = moved.begin(t, "r3")
	require.NoError(t, err)
	require.Equal(t, "r1", now.From.Run)
	now, err = moved.begin(t, "r4")
	require.NoError(t, err)
	require.Nil(t, now.From)
	stored, err := alice.stored(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"alice", "r3"}, []string{stored.Claim.Owners[0].Name, stored.Claim.Engine.Run})
}

// TestWhoCannotReadTheSecrets installs nothing in place of another engine, and may remove what
// nobody can read any more.
func TestWhoCannotReadTheSecrets(t *testing.T) {
	bucket := t.TempDir()
	a := called(t, bucket, contract.Caller{Node: true})
	_, err := a.begin(t, "r1")
	require.NoError(t, err)
	vault, err := a.place.Vault(t.Context(), a.store)
	require.NoError(t, err)
	require.NoError(t, vault.Put(t.Context(), 1, "kubeconfig", redact.New([]byte("k"))))

	b := called(t, bucket, contract.Caller{Node: true, Here: true})
	_, lease, err := lock.New(b.store, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: "r2"})
	require.NoError(t, err)
	open := func(workflow string) error {
		return b.Open(t.Context(), filepath.Join(t.TempDir(), "opened"), lock.Holder{Run: "r2", Workflow: workflow}, "demo", "")
	}
	engine := func() string {
		claim, err := state.ClaimOf(t.Context(), b.store)
		require.NoError(t, err)
		return claim.Engine.Run
	}
	require.ErrorIs(t, open(config.Install), &fault.Fault{Code: secret.CodeBadKey})
	require.Equal(t, "r1", engine())
	require.NoError(t, open(config.Destroy))
	require.Equal(t, "r2", engine())
	require.NoError(t, lease.Release(t.Context()))
}

// TestADeploymentThatOthersTakeOnMeanwhile: who has waited for the lock looks again, and gives
// it up.
func TestADeploymentThatOthersTakeOnMeanwhile(t *testing.T) {
	bucket := t.TempDir()
	a, b := called(t, bucket, contract.Caller{Node: true}), called(t, bucket, contract.Caller{Node: true})
	_, lease, err := lock.New(a.store, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: "r1"})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- b.Hold(t.Context(), make(chan struct{}), lock.Holder{User: "u", Host: "h", Run: "r2"}, time.Minute, 0)
	}()
	require.Eventually(t, func() bool { // it has looked, and waits
		_, err := os.Stat(filepath.Join(b.place.Volume, "runs/r2/.holder"))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, a.Open(t.Context(), filepath.Join(t.TempDir(), "opened"), lock.Holder{Run: "r1"}, "demo", ""))
	require.NoError(t, lease.Release(t.Context()))
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it has the lock")
	}
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeElsewhere})
	current, err := lock.New(a.store, lock.Options{}).Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, current, "the lock is free")
}

// TestWhereTheClusterIs: on the engine that has it, and on no other.
func TestWhereTheClusterIs(t *testing.T) {
	bucket := t.TempDir()
	a, b := called(t, bucket, contract.Caller{Node: true}), called(t, bucket, contract.Caller{Node: true})
	here := func(s *State) bool {
		t.Helper()
		stored, err := s.stored(t.Context())
		require.NoError(t, err)
		return stored.Here
	}
	_, err := a.begin(t, "r1")
	require.NoError(t, err)
	require.False(t, here(a), "there is none yet")
	for _, s := range []*State{a, b} { // the other one has read it once, too
		require.NoError(t, os.MkdirAll(filepath.Join(s.place.Volume, "secrets"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(s.place.Volume, "secrets/kubeconfig"), []byte("k"), 0o600))
	}
	require.True(t, here(a))
	require.False(t, here(b))
}
