package build_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

func open(t *testing.T) *build.Store {
	t.Helper()
	st, err := build.OpenStore(t.TempDir())
	require.NoError(t, err)
	return st
}

func key(value string) build.Key { return build.NewInputs("thing").String("value", value).Key() }

func write(text string) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "out"), []byte(text), 0o644)
	}
}

func TestResultIsBuiltOnce(t *testing.T) {
	st := open(t)
	dir, hit, err := st.Do(t.Context(), key("a"), write("one"))
	require.NoError(t, err)
	require.False(t, hit)
	again, hit, err := st.Do(t.Context(), key("a"), func(context.Context, string) error {
		return errors.New("built again")
	})
	require.NoError(t, err)
	require.True(t, hit)
	require.Equal(t, dir, again)
	other, hit, err := st.Do(t.Context(), key("b"), write("two"))
	require.NoError(t, err)
	require.False(t, hit)
	require.NotEqual(t, dir, other)
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	st := open(t)
	broken := errors.New("broken")
	_, _, err := st.Do(t.Context(), key("a"), func(ctx context.Context, dir string) error {
		require.NoError(t, write("half")(ctx, dir))
		return broken
	})
	require.ErrorIs(t, err, broken)
	_, ok := st.Lookup(key("a"))
	require.False(t, ok)
	left, err := os.ReadDir(filepath.Join(st.Path(), "objects", "thing"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestCancelledBuildIsNotKept(t *testing.T) {
	st := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := st.Do(ctx, key("a"), func(ctx context.Context, dir string) error {
		cancel() // and the build does not notice
		return write("late")(ctx, dir)
	})
	require.ErrorIs(t, err, context.Canceled)
	_, ok := st.Lookup(key("a"))
	require.False(t, ok)
}

func TestConcurrentBuildersShareOneBuild(t *testing.T) {
	root := t.TempDir()
	var builds, told atomic.Int32
	waiting := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			st, err := build.OpenStore(root)
			require.NoError(t, err)
			st.Waiting = func() {
				if told.Add(1) == 1 {
					close(waiting)
				}
			}
			dir, _, err := st.Do(t.Context(), key("a"), func(ctx context.Context, dir string) error {
				builds.Add(1)
				<-waiting // somebody waits for this very build
				return write("one")(ctx, dir)
			})
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(dir, "out"))
			require.NoError(t, err)
			require.Equal(t, "one", string(b))
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, builds.Load())
	require.Positive(t, told.Load())
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	st := open(t)
	release, err := st.Lock(t.Context(), key("a"))
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithCancelCause(t.Context())
	impatient := errors.New("impatient")
	st.Waiting = func() { cancel(impatient) }
	_, _, err = st.Do(ctx, key("a"), write("never"))
	require.ErrorIs(t, err, impatient)
	require.ErrorContains(t, err, "thing@")
}

// TestKilledBuilder kills another process in the middle of a build: nothing
// that looks finished stays, and the next builder neither waits nor finds
// the half.
func TestKilledBuilder(t *testing.T) {
	if root := os.Getenv("SLIPWAY_TEST_STORE"); root != "" {
		buildUntilKilled(t, root)
		return
	}
	root := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestKilledBuilder$")
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_STORE="+root)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1)) // it has written its half
	require.NoError(t, err)

	st, err := build.OpenStore(root)
	require.NoError(t, err)
	_, ok := st.Lookup(key("a"))
	require.False(t, ok, "a build that runs is no result")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	st.Waiting = func() { t.Error("waits for a dead builder") }
	dir, hit, err := st.Do(t.Context(), key("a"), func(ctx context.Context, dir string) error {
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "the dead builder's half")
		return write("whole")(ctx, dir)
	})
	require.NoError(t, err)
	require.False(t, hit)
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	require.NoError(t, err)
	require.Equal(t, "whole", string(b))
}

func buildUntilKilled(t *testing.T, root string) {
	st, err := build.OpenStore(root)
	require.NoError(t, err)
	_, _, err = st.Do(t.Context(), key("a"), func(ctx context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), []byte("half"), 0o644); err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString("."); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return errors.New("was not killed")
	})
	require.NoError(t, err)
}

func TestRootFollowsTheEnvironment(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("SLIPWAY_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "")
	for _, c := range []struct{ name, value, want string }{
		{"HOME", "/home/somebody", "/home/somebody/.cache/slipway"},
		{"XDG_CACHE_HOME", "relative", "/home/somebody/.cache/slipway"},
		{"XDG_CACHE_HOME", "/var/cache", "/var/cache/slipway"},
		{"SLIPWAY_CACHE", "/srv/cache", "/srv/cache"},
	} {
		t.Setenv(c.name, c.value)
		root, err := build.StoreRoot()
		require.NoError(t, err)
		require.Equal(t, c.want, root)
	}
}
