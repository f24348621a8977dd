package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// suite describes stores whose contract conform tests.
type suite struct {
	// open returns an empty store.
	open func(t *testing.T) *store.Store
	// again opens the same store a second time, as another process would; nil if
	// that is not possible.
	again func(t *testing.T, first *store.Store) *store.Store
	// many is how many values the test of long lists writes; 0 is 1,100, which is
	// more than a page of any server.
	many int
}

// conform tests the stores of s.
func conform(t *testing.T, s suite) {
	if s.many == 0 {
		s.many = 1100
	}
	for name, test := range map[string]func(*testing.T, suite){
		"absent":              absent,
		"values":              values,
		"replaced":            replaced,
		"created once":        createdOnce,
		"one creates":         oneCreates,
		"whole while written": wholeWhileWritten,
		"deleted":             deleted,
		"listed":              listed,
		"long list":           longList,
		"parts":               parts,
		"no keys":             noKeys,
		"too large":           tooLarge,
		"cancelled":           cancelled,
		"seen by another":     seenByAnother,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func absent(t *testing.T, s suite) {
	st := s.open(t)
	require.NoError(t, st.Check(t.Context()))
	_, err := st.Get(t.Context(), "a/b.json")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "a/b.json")
	keys, err := st.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}

func values(t *testing.T, s suite) {
	st := s.open(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for key, want := range map[string][]byte{
		"empty": {}, "a/bytes": all, "a/b/c/text.json": []byte("{}\n"), "long": bytes.Repeat(all, 1<<12),
		"a_/B.c@d=e+f-g/0": []byte("name"), "0/" + strings.Repeat("k", 200): []byte("long name"),
	} {
		require.NoError(t, st.Put(t.Context(), key, want), key)
		got, err := st.Get(t.Context(), key)
		require.NoError(t, err, key)
		require.True(t, bytes.Equal(want, got), key)
	}
}

func replaced(t *testing.T, s suite) {
	st := s.open(t)
	for _, want := range []string{"a rather long first value", "second", ""} {
		require.NoError(t, st.Put(t.Context(), "k", []byte(want)))
		require.Equal(t, want, get(t, st, "k"))
	}
}

func createdOnce(t *testing.T, s suite) {
	st := s.open(t)
	require.NoError(t, st.Create(t.Context(), "a/k", []byte("first")))
	err := st.Create(t.Context(), "a/k", []byte("second"))
	require.ErrorIs(t, err, store.ErrExists)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, "first", get(t, st, "a/k"))
	require.NoError(t, st.Put(t.Context(), "p", nil))
	require.ErrorIs(t, st.Create(t.Context(), "p", []byte("x")), store.ErrExists)
	require.NoError(t, st.Delete(t.Context(), "a/k"))
	require.NoError(t, st.Create(t.Context(), "a/k", []byte("third")))
	require.Equal(t, "third", get(t, st, "a/k"))
}

// oneCreates races creators of the same keys.
func oneCreates(t *testing.T, s suite) {
	const creators, rounds = 20, 10
	st := s.open(t)
	for round := range rounds {
		key := fmt.Sprintf("race/%d", round)
		var won atomic.Int32
		var winner atomic.Value
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range creators {
			wg.Go(func() {
				value := strings.Repeat(fmt.Sprintf("%02d", i), 2000)
				<-start
				switch err := st.Create(t.Context(), key, []byte(value)); {
				case err == nil:
					won.Add(1)
					winner.Store(value)
				case !errors.Is(err, store.ErrExists):
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		require.EqualValues(t, 1, won.Load(), "creators that won")
		require.Equal(t, winner.Load(), get(t, st, key))
	}
}

// wholeWhileWritten reads and lists while others write.
func wholeWhileWritten(t *testing.T, s suite) {
	const writers, writes = 4, 25
	st := s.open(t)
	value := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 30_000+i) }
	require.NoError(t, st.Put(t.Context(), "k", value(0)))
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range writes {
				if err := st.Put(t.Context(), "k", value(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	defer wg.Wait()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got := get(t, st, "k")
		require.Equal(t, string(value(int(got[0]-'a'))), got)
		keys, err := st.List(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []string{"k"}, keys, "nothing unfinished is listed")
	}
}

func deleted(t *testing.T, s suite) {
	st := s.open(t)
	require.NoError(t, st.Delete(t.Context(), "a/k"))
	require.NoError(t, st.Put(t.Context(), "a/k", []byte("x")))
	require.NoError(t, st.Put(t.Context(), "a/other", []byte("x")))
	require.NoError(t, st.Delete(t.Context(), "a/k"))
	require.NoError(t, st.Delete(t.Context(), "a/k"))
	require.NoError(t, st.Delete(t.Context(), "a"), "no value has this key")
	_, err := st.Get(t.Context(), "a/k")
	require.ErrorIs(t, err, fs.ErrNotExist)
	keys, err := st.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a/other"}, keys)
}

func listed(t *testing.T, s suite) {
	st := s.open(t)
	for _, key := range []string{"b/2", "a-b", "b/10", "a/b/c", "B", "ab/x", "b.c"} {
		require.NoError(t, st.Put(t.Context(), key, []byte(key)))
	}
	for prefix, want := range map[string][]string{
		"":      {"B", "a-b", "a/b/c", "ab/x", "b.c", "b/10", "b/2"},
		"a":     {"a-b", "a/b/c", "ab/x"},
		"b/":    {"b/10", "b/2"},
		"b/1":   {"b/10"},
		"a/b/":  {"a/b/c"},
		"a/b/c": {"a/b/c"},
		"c/":    nil,
		"B/":    nil,
	} {
		got, err := st.List(t.Context(), prefix)
		require.NoError(t, err, prefix)
		require.Equal(t, want, got, prefix)
	}
}

func longList(t *testing.T, s suite) {
	st := s.open(t)
	var want []string
	var wg sync.WaitGroup
	work := make(chan string)
	for range 8 {
		wg.Go(func() {
			for key := range work {
				if err := st.Put(t.Context(), key, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range s.many {
		key := fmt.Sprintf("many/%d", i)
		want = append(want, key)
		work <- key
	}
	close(work)
	wg.Wait()
	slices.Sort(want)
	got, err := st.List(t.Context(), "many/")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func parts(t *testing.T, s suite) {
	st := s.open(t)
	one, err := st.Sub("deployments/one")
	require.NoError(t, err)
	other, err := st.Sub("deployments/one-more")
	require.NoError(t, err)
	require.NoError(t, one.Put(t.Context(), "a/k", []byte("1")))
	require.NoError(t, other.Put(t.Context(), "a/k", []byte("2")))
	require.Equal(t, "1", get(t, one, "a/k"))
	require.Equal(t, "1", get(t, st, "deployments/one/a/k"))
	keys, err := one.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a/k"}, keys)
	require.NoError(t, one.Delete(t.Context(), "a/k"))
	require.Equal(t, "2", get(t, other, "a/k"))
	deep, err := other.Sub("a")
	require.NoError(t, err)
	require.Equal(t, "2", get(t, deep, "k"))
	for _, bad := range []string{"", "..", "a/..", "/a", "a/"} {
		_, err := st.Sub(bad)
		require.Error(t, err, bad)
	}
}

func noKeys(t *testing.T, s suite) {
	st := s.open(t)
	for _, bad := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", ".a", "a/.b", "a b", "a\\b", "a:b", "a\nb", "ä", "a%2e",
		"a\x00b", strings.Repeat("k", 201), strings.Repeat("k/", 256) + "k", "*", "-a", "a/-b",
	} {
		_, err := st.Get(t.Context(), bad)
		require.ErrorContains(t, err, "is not a valid key", bad)
		require.ErrorContains(t, st.Put(t.Context(), bad, nil), "is not a valid key", bad)
		require.ErrorContains(t, st.Create(t.Context(), bad, nil), "is not a valid key", bad)
		require.ErrorContains(t, st.Delete(t.Context(), bad), "is not a valid key", bad)
	}
	for _, bad := range []string{"/", "/a", "../", "a//", "a/.", "a b"} {
		_, err := st.List(t.Context(), bad)
		require.ErrorContains(t, err, "is not a valid key", bad)
	}
}

func tooLarge(t *testing.T, s suite) {
	st := s.open(t)
	require.ErrorContains(t, st.Put(t.Context(), "k", make([]byte, store.MaxBytes+1)), "64 MiB")
	require.ErrorContains(t, st.Create(t.Context(), "k", make([]byte, store.MaxBytes+1)), "64 MiB")
	_, err := st.Get(t.Context(), "k")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func cancelled(t *testing.T, s suite) {
	st := s.open(t)
	require.NoError(t, st.Put(t.Context(), "k", []byte("old")))
	why := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	require.ErrorIs(t, st.Put(ctx, "k", []byte("new")), why)
	require.ErrorIs(t, st.Create(ctx, "k2", []byte("new")), why)
	require.ErrorIs(t, st.Delete(ctx, "k"), why)
	_, err := st.Get(ctx, "k")
	require.ErrorIs(t, err, why)
	_, err = st.List(ctx, "")
	require.ErrorIs(t, err, why)
	require.Equal(t, "old", get(t, st, "k"))
	keys, err := st.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"k"}, keys)
}

func seenByAnother(t *testing.T, s suite) {
	if s.again == nil {
		t.Skip("this store cannot be opened a second time")
	}
	st := s.open(t)
	other := s.again(t, st)
	require.NoError(t, st.Put(t.Context(), "a/k", []byte("1")))
	require.Equal(t, "1", get(t, other, "a/k"))
	require.ErrorIs(t, other.Create(t.Context(), "a/k", nil), store.ErrExists)
	require.NoError(t, other.Put(t.Context(), "a/k", []byte("2")))
	require.Equal(t, "2", get(t, st, "a/k"))
	keys, err := other.List(t.Context(), "a/")
	require.NoError(t, err)
	require.Equal(t, []string{"a/k"}, keys)
	require.NoError(t, other.Delete(t.Context(), "a/k"))
	_, err = st.Get(t.Context(), "a/k")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func get(t *testing.T, st *store.Store, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	data, err := st.Get(ctx, key)
	require.NoError(t, err)
	return string(data)
}
