package store_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
)

func memory(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://", store.Options{})
	require.NoError(t, err)
	return s
}

func requireValue(t *testing.T, v store.Versions, s store.Values, want string, generation int64) {
	t.Helper()
	data, got, err := v.Newest(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, want, string(data))
	require.Equal(t, generation, got)
}

// TestNewest: the highest generation counts, in whatever order they were written.
func TestNewest(t *testing.T) {
	s, v := memory(t), store.Versions{Prefix: "state/", Suffix: ".yaml"}
	_, _, err := v.Newest(t.Context(), s)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, v.Put(t.Context(), s, 0, []byte("without the lock")))
	requireValue(t, v, s, "without the lock", 0)
	for _, key := range []string{"state/x.yaml", "state/000000000099.yaml.bak", "state/99.yaml", "state/a/000000000099.yaml", "state/000000000099.json"} {
		require.NoError(t, s.Put(t.Context(), key, []byte("not a version")))
	}
	require.NoError(t, v.Put(t.Context(), s, 12, []byte("twelve")))
	require.NoError(t, v.Put(t.Context(), s, 9, []byte("nine, late")))
	requireValue(t, v, s, "twelve", 12)
	require.NoError(t, v.Put(t.Context(), s, 12, []byte("twelve again")))
	requireValue(t, v, s, "twelve again", 12)
	keys, err := s.List(t.Context(), "state/0")
	require.NoError(t, err)
	require.Equal(t, []string{"state/000000000012.yaml", "state/000000000099.json", "state/000000000099.yaml.bak"}, keys, "the lower ones are gone")
}

// TestPut_kept: of those below, some may stay.
func TestPut_kept(t *testing.T) {
	s, v := memory(t), store.Versions{Prefix: "terraform/", Suffix: ".tfstate", Kept: 1}
	require.NoError(t, v.Put(t.Context(), s, 1, nil))
	stays := func(want ...string) {
		t.Helper()
		keys, err := s.List(t.Context(), "terraform/")
		require.NoError(t, err)
		require.Equal(t, want, keys)
	}
	require.NoError(t, v.Put(t.Context(), s, 3, nil))
	stays("terraform/000000000001.tfstate", "terraform/000000000003.tfstate")
	require.NoError(t, v.Put(t.Context(), s, 3, nil))
	stays("terraform/000000000001.tfstate", "terraform/000000000003.tfstate")
	require.NoError(t, v.Put(t.Context(), s, 5, nil))
	stays("terraform/000000000003.tfstate", "terraform/000000000005.tfstate")
	require.NoError(t, v.Put(t.Context(), s, 7, nil))
	stays("terraform/000000000005.tfstate", "terraform/000000000007.tfstate")
}

func TestGeneration(t *testing.T) {
	for key, want := range map[string]int64{
		"state/000000000012.yaml": 12, "journal/a.b/000000000000.json": 0, "latest/000000000007": 7,
		"state.yaml": -1, "backups/20260102030405.tar": -1, "x/000000000012.tar.gz": -1, "000000000012x": -1,
	} {
		got, ok := store.Generation(key)
		require.Equal(t, want >= 0, ok, key)
		if ok {
			require.Equal(t, want, got, key)
		}
	}
}

// removing removes the newest version once while it is read.
type removing struct {
	*store.Store
	v     store.Versions
	times int
}

func (r *removing) Get(ctx context.Context, key string) ([]byte, error) {
	if r.times > 0 {
		r.times--
		if err := r.v.Put(ctx, r.Store, 8, []byte("eight")); err != nil {
			return nil, err
		}
	}
	return r.Store.Get(ctx, key)
}

// TestNewest_replaced: one that is replaced while it is read is read again.
func TestNewest_replaced(t *testing.T) {
	s, v := memory(t), store.Versions{Prefix: "latest/"}
	require.NoError(t, v.Put(t.Context(), s, 7, []byte("seven")))
	requireValue(t, v, &removing{s, v, 1}, "eight", 8)
}

// TestPut_planted: a version above the holder's own generation, which nobody with the lock has written,
// hides nothing that the holder writes.
func TestPut_planted(t *testing.T) {
	v := store.Versions{Prefix: "state/", Suffix: ".yaml", Kept: 1}
	plant := func(t *testing.T) *store.Store {
		s := memory(t)
		for _, g := range []int64{19, 20, 21, 22, 5000, 1_000_000_020, 999_999_999_999} {
			require.NoError(t, s.Put(t.Context(), v.Key(g), []byte("planted")))
		}
		return s
	}
	var lost error
	check := func(context.Context) error { return lost }

	s := plant(t)
	require.NoError(t, v.Put(t.Context(), s.Fenced(check), 20, []byte("twenty")))
	requireValue(t, v, s, "twenty", 20)
	keys, err := s.List(t.Context(), "state/")
	require.NoError(t, err)
	require.Equal(t, []string{"state/000000000019.yaml", "state/000000000020.yaml"}, keys)

	s = plant(t)
	require.NoError(t, v.Remove(t.Context(), s.Fenced(check), 20))
	_, _, err = v.Newest(t.Context(), s)
	require.ErrorIs(t, err, fs.ErrNotExist)

	// A later holder's stays: whoever lists it finds out that the lock is lost before anything is deleted.
	s = plant(t)
	lost = errors.New("somebody else has the lock")
	before, err := s.List(t.Context(), "state/")
	require.NoError(t, err)
	require.ErrorIs(t, v.Put(t.Context(), &late{s, s.Fenced(check)}, 20, []byte("late")), lost)
	keys, err = s.List(t.Context(), "state/")
	require.NoError(t, err)
	require.Equal(t, before, keys)
}

// late is a fenced store to which a write gets that was checked before the lock was lost.
type late struct {
	open *store.Store
	*store.Store
}

func (l *late) Put(ctx context.Context, key string, data []byte) error {
	return l.open.Put(ctx, key, data)
}
