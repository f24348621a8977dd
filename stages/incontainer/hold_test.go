package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// holder runs `slipway state hold` until stop is closed.
func holder(t *testing.T, root, run string, port ...int) (stop chan struct{}, ended chan error, said *strings.Builder) {
	t.Helper()
	stop, ended, said = make(chan struct{}), make(chan error, 1), &strings.Builder{}
	screen := progress.Open(said, progress.Options{})
	port = append(port, 0) // any
	go func() {
		err := (&State{backend: state.Backend{Volume: root}, store: volume(t, root), errw: screen}).hold(t.Context(), stop, contract.HoldInput{Who: lock.Holder{User: "u", Host: "h", Run: run, Workflow: "install"}, Port: port[0]})
		containers.WriteFault(screen, err)
		ended <- err
	}()
	return stop, ended, said
}

// freePort is one on which nobody listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).Port
}

// listens waits until the holder of the lock listens: it does once it has it.
func listens(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
}

// volume is the store in a state volume.
func volume(t *testing.T, root string) *store.Store {
	t.Helper()
	s, err := state.Backend{Volume: root}.Open(t.Context())
	require.NoError(t, err)
	return s
}

func TestOneRunHoldsTheLock(t *testing.T) {
	root := t.TempDir()
	port := freePort(t)
	stop, first, _ := holder(t, root, "r1", port)
	listens(t, port)

	_, second, said := holder(t, root, "r2")
	err := <-second
	require.Equal(t, fault.Locked, fault.ClassOf(err))
	require.ErrorContains(t, err, "u@h (install, run r1)")
	told := containers.ParseFault(said.String())
	require.NotNil(t, told, said.String())
	require.Equal(t, lock.CodeHeld, told.Code)

	close(stop)
	require.NoError(t, <-first)
	l := lock.New(volume(t, root), lock.Options{})
	current, err := l.Live(t.Context())
	require.NoError(t, err)
	require.Nil(t, current, "it gave the lock up")
}

// TestARunOnAnotherProviderIsRefused before it changes anything, as long as the deployment
// has a cluster.
func TestARunOnAnotherProviderIsRefused(t *testing.T) {
	root := t.TempDir()
	s := volume(t, root)
	require.NoError(t, state.PutRuntime(t.Context(), s, 1, contract.RuntimeState{Deployment: "demo", Provider: "existing"}))
	begin := func(provider string) error {
		t.Setenv(contract.ProviderVariable, provider)
		stop := make(chan struct{})
		close(stop)
		return (&State{backend: state.Backend{Volume: root}, store: s, errw: io.Discard}).hold(t.Context(), stop, contract.HoldInput{Who: lock.Holder{Run: "r1", Workflow: "destroy"}})
	}
	require.NoError(t, begin("local"), "nothing was installed there")
	require.NoError(t, state.PutCluster(t.Context(), s, 1, state.Cluster{UID: "u"}))
	err := begin("local")
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-009"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "deployment demo is on provider existing, and the configuration says local; nothing was changed")
	require.NoError(t, begin("existing"))
	require.NoError(t, begin(""), "of who does not say")

	require.NoError(t, state.PutRuntime(t.Context(), s, 1, contract.RuntimeState{Deployment: "demo", Provider: "local"}))
	require.NoError(t, s.Delete(t.Context(), "cluster/000000000001.json"))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "secrets/kubeconfig"), nil, 0o600))
	require.ErrorIs(t, begin("existing"), &fault.Fault{Code: "DEP-009"})
	require.NoError(t, begin("local"))
}

func TestALockThatIsTakenAwayEndsItsHolder(t *testing.T) {
	root := t.TempDir()
	port := freePort(t)
	_, first, _ := holder(t, root, "r1", port)
	listens(t, port) // one that is still taking the lock would begin anew
	_, err := lock.New(volume(t, root), lock.Options{}).Unlock(t.Context(), lock.Holder{User: "boss"}, true)
	require.NoError(t, err)
	select {
	case err = <-first:
	case <-time.After(4 * lock.DefaultBeat):
		t.Fatal("the holder goes on")
	}
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	require.False(t, errors.Is(err, context.Canceled))
}

// TestARunThatLosesItsLockIsWatched: the watch says why it was lost.
func TestARunThatLosesItsLockIsWatched(t *testing.T) {
	root := t.TempDir()
	s := &State{backend: state.Backend{Volume: root}, store: volume(t, root), errw: io.Discard}
	require.ErrorContains(t, s.watch(t.Context(), "r1"), "nobody has it")
	port := freePort(t)
	stop, first, _ := holder(t, root, "r1", port)
	listens(t, port)
	watched := make(chan error, 1)
	go func() { watched <- s.watch(t.Context(), "r1") }()
	select {
	case err := <-watched:
		t.Fatal(err)
	case <-time.After(time.Second):
	}
	close(stop)
	require.NoError(t, <-first)
	err := <-watched
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	require.ErrorContains(t, err, "it was released")
}

// TestWhoWaitsForADeadHolderCanBeStopped: it does not wait for the end of that one's time.
func TestWhoWaitsForADeadHolderCanBeStopped(t *testing.T) {
	root := t.TempDir()
	s := volume(t, root)
	l := lock.New(s, lock.Options{Clock: func() time.Time { return time.Now().Add(-time.Hour) }})
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := l.Acquire(ctx, lock.Holder{Run: "r0"})
	require.NoError(t, err)
	data, err := s.Get(t.Context(), "lock/000000000001.json")
	require.NoError(t, err)
	cancel()
	require.NoError(t, s.Put(t.Context(), "lock/000000000002.json", data)) // one that cannot be read
	stop, ended, said := holder(t, root, "r1")
	time.Sleep(200 * time.Millisecond)
	close(stop)
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("it waits on")
	}
	require.Contains(t, said.String(), "waiting up to 53s")
}

// TestARunThatIsGoneIsTakenOverAtOnce: the system knows that none of its processes lives. One
// of which something works is waited for.
func TestARunThatIsGoneIsTakenOverAtOnce(t *testing.T) {
	root := t.TempDir()
	backend, s := state.Backend{Volume: root}, volume(t, root)
	end, err := backend.Holds(t.Context(), "r1")
	require.NoError(t, err)
	killed, cancel := context.WithCancel(t.Context())
	_, lease, err := lock.New(s, lock.Options{}).Acquire(killed, lock.Holder{User: "u", Host: "h", Run: "r1"})
	require.NoError(t, err)
	_, work, err := backend.Work(t.Context(), s, "r1")
	require.NoError(t, err)
	defer func() { _ = lease.Leave(context.WithoutCancel(t.Context())) }() // it is lost
	cancel()
	require.NoError(t, end()) // as its death does

	stop, ended, said := holder(t, root, "r2")
	held := func() bool {
		_, err := lock.New(s, lock.Options{}).HeldBy(t.Context(), "r2")
		return err == nil
	}
	time.Sleep(2 * time.Second)
	require.False(t, held(), "a step works")
	require.NoError(t, work.End())
	require.Eventually(t, held, 5*time.Second, 10*time.Millisecond, said)
	close(stop)
	require.NoError(t, <-ended)
}

// TestALockIsNotReleasedWhileSomethingWorksUnderIt: it is left to expire.
func TestALockIsNotReleasedWhileSomethingWorksUnderIt(t *testing.T) {
	root := t.TempDir()
	backend, s := state.Backend{Volume: root}, volume(t, root)
	l := lock.New(s, lock.Options{})
	for _, ends := range []bool{true, false} {
		run := "r1"
		if !ends {
			run = "r2"
		}
		port := freePort(t)
		stop, ended, _ := holder(t, root, run, port)
		listens(t, port)
		_, work, err := backend.Work(t.Context(), s, run)
		require.NoError(t, err)
		close(stop)
		time.Sleep(time.Second)
		_, err = l.HeldBy(t.Context(), run)
		require.NoError(t, err, "it is released only after")
		if ends {
			require.NoError(t, work.End())
			require.NoError(t, <-ended)
			current, err := l.Live(t.Context())
			require.NoError(t, err)
			require.Nil(t, current)
			continue
		}
		require.ErrorIs(t, <-ended, &fault.Fault{Code: lock.CodeRelease})
		_, err = l.HeldBy(t.Context(), run)
		require.NoError(t, err)
		require.NoError(t, work.End())
	}
}

// TestAWipeEndsWithTheLock, and one that has ended well leaves no access to the cluster, which
// would be missed.
func TestAWipeEndsWithTheLock(t *testing.T) {
	root := t.TempDir()
	s := &State{backend: state.Backend{Volume: root}, store: volume(t, root), errw: io.Discard}
	lost := &fault.Fault{Code: lock.CodeLost}
	mark, access := filepath.Join(root, "mark"), filepath.Join(root, "secrets", "kubeconfig")
	require.NoError(t, s.store.Put(t.Context(), "secrets/kubeconfig", []byte("k")))
	require.ErrorIs(t, s.wipe(t.Context(), "r1", []string{"touch", mark}), lost)
	require.NoFileExists(t, mark)
	l := lock.New(s.store, lock.Options{})
	_, lease, err := l.Acquire(t.Context(), lock.Holder{Run: "r1"})
	require.NoError(t, err)
	require.ErrorContains(t, s.wipe(t.Context(), "r1", []string{"false"}), "exit status 1")
	require.FileExists(t, access, "the cluster is there")
	require.NoError(t, s.wipe(t.Context(), "r1", []string{"touch", mark}))
	require.FileExists(t, mark)
	require.NoFileExists(t, access)
	ended := make(chan error, 1)
	go func() { ended <- s.wipe(t.Context(), "r1", []string{"sleep", "60"}) }()
	time.Sleep(500 * time.Millisecond)
	_, err = l.Unlock(t.Context(), lock.Holder{User: "boss"}, true)
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, lost)
	case <-time.After(4 * lock.DefaultBeat):
		t.Fatal("it goes on")
	}
	require.Error(t, lease.Release(t.Context()))
}

// TestARunThatHasLostTheLockKeepsWhatIsItsOwn and nothing that is the deployment's.
func TestARunThatHasLostTheLockKeepsWhatIsItsOwn(t *testing.T) {
	root := t.TempDir()
	s := &State{backend: state.Backend{Volume: root}, store: volume(t, root), errw: io.Discard}
	keep := func(run, revision string) error {
		text, err := json.Marshal(contract.RunFiles{Run: run, Files: map[string]string{"report.json": run}, Runtime: &contract.RuntimeState{Revision: revision}})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "keep.json")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return s.keep(t.Context(), file)
	}
	l := lock.New(s.store, lock.Options{})
	_, lease, err := l.Acquire(t.Context(), lock.Holder{Run: "r2"})
	require.NoError(t, err)
	require.NoError(t, keep("r2", "new"))
	require.ErrorIs(t, keep("r1", "old"), &fault.Fault{Code: lock.CodeLost})
	last, err := state.Latest(t.Context(), s.store)
	require.NoError(t, err)
	require.Equal(t, "r2", last)
	runtime, err := state.Runtime(t.Context(), s.store)
	require.NoError(t, err)
	require.Equal(t, "new", runtime.Revision)
	data, err := state.File(t.Context(), s.store, "r1", "report.json")
	require.NoError(t, err)
	require.Equal(t, "r1", string(data))
	require.NoError(t, lease.Release(t.Context()))
}
