package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
)

const canary = "c4nary-value"

func key(t *testing.T) (*store.VaultKey, redact.Value) {
	t.Helper()
	k, text, err := store.NewVaultKey()
	require.NoError(t, err)
	return k, text
}

func TestVault(t *testing.T) {
	s := memory(t)
	k, text := key(t)
	v := store.OpenVault(s, k)
	_, err := v.Get(t.Context(), "db/password")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, want := range [][]byte{[]byte(canary), {}, bytes.Repeat([]byte{0, 255}, 1<<16)} {
		require.NoError(t, v.Put(t.Context(), 3, "db/password", redact.New(want)))
		again, err := store.ParseVaultKey(text)
		require.NoError(t, err)
		got, err := store.OpenVault(s, again).Get(t.Context(), "db/password")
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got.Reveal()))
	}
	require.NoError(t, v.Put(t.Context(), 3, "ca", redact.New([]byte(canary))))
	names, err := v.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"ca", "db/password"}, names)
	stored, err := s.Get(t.Context(), "secrets/ca/000000000003.age")
	require.NoError(t, err)
	require.NotContains(t, string(stored), canary)
	require.ErrorContains(t, v.Put(t.Context(), 3, "../up", redact.New(nil)), "is not a valid key")
}

// TestVault_late: a write that arrives after that of a later holder of the lock replaces nothing.
func TestVault_late(t *testing.T) {
	s := memory(t)
	k, _ := key(t)
	v := store.OpenVault(s, k)
	is := func(want string) {
		t.Helper()
		got, err := v.Get(t.Context(), "ca")
		require.NoError(t, err)
		require.Equal(t, want, string(got.Reveal()))
		names, err := v.Names(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"ca"}, names)
	}
	require.NoError(t, v.Put(t.Context(), 5, "ca", redact.New([]byte("later"))))
	is("later")
	late, err := v.Encrypt("ca", []byte("late"))
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "secrets/ca/000000000004.age", late))
	is("later")
	require.NoError(t, v.Put(t.Context(), 6, "ca", redact.New([]byte("now"))))
	is("now")
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"secrets/ca/000000000006.age"}, keys)

	require.NoError(t, store.RemoveSecret(t.Context(), s, 5, "ca"))
	is("now")
	require.NoError(t, store.RemoveSecret(t.Context(), s, 6, "ca"))
	require.NoError(t, store.RemoveSecret(t.Context(), s, 6, "ca"), "again")
	_, err = v.Get(t.Context(), "ca")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestVault_canary: a value is only visible through Reveal.
func TestVault_canary(t *testing.T) {
	v := redact.New([]byte(canary))
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v, "p", &v, "s", struct{ V redact.Value }{v})
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v, "p", &v, "s", struct{ V redact.Value }{v})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%c", "%U"} {
		fmt.Fprintf(&out, verb+"\n", v)
		fmt.Fprintf(&out, verb+"\n", struct{ V redact.Value }{v})
		fmt.Fprintf(&out, verb+"\n", []redact.Value{v})
		fmt.Fprintf(&out, verb+"\n", struct{ v redact.Value }{v})
	}
	encoded, err := json.Marshal(map[string]any{"v": v, "p": &v})
	require.NoError(t, err)
	out.Write(encoded)
	fmt.Fprintln(&out, v, fmt.Errorf("e: %v", v), v.String())
	require.Contains(t, out.String(), "***")
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("%d", []byte(canary)), "Yzbh"} {
		require.NotContains(t, out.String(), form)
	}
	copied := v.Reveal()
	copied[0] = 'X'
	require.Equal(t, canary, string(v.Reveal()))
}

func TestVault_wrongKey(t *testing.T) {
	s := memory(t)
	mine, _ := key(t)
	other, text := key(t)
	require.NoError(t, store.OpenVault(s, mine).Put(t.Context(), 3, "ca", redact.New([]byte(canary))))
	_, err := store.OpenVault(s, other).Get(t.Context(), "ca")
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeBadKey})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "the key that the deployment was installed with")
	require.NotContains(t, err.Error()+f.Fix, string(text.Reveal()))
}

// TestVault_damaged: altered, truncated or swapped secrets are rejected.
func TestVault_damaged(t *testing.T) {
	s := memory(t)
	k, _ := key(t)
	v := store.OpenVault(s, k)
	require.NoError(t, v.Put(t.Context(), 3, "ca", redact.New([]byte(canary))))
	require.NoError(t, v.Put(t.Context(), 3, "other", redact.New([]byte("x"))))
	whole, err := s.Get(t.Context(), "secrets/ca/000000000003.age")
	require.NoError(t, err)
	isDamaged := func(stored []byte, msg ...any) {
		t.Helper()
		require.NoError(t, s.Put(t.Context(), "secrets/ca/000000000003.age", stored))
		_, err := v.Get(t.Context(), "ca")
		require.Error(t, err, msg...)
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, msg...)
		require.Contains(t, []fault.Code{store.CodeDamaged, store.CodeBadKey}, f.Code)
		require.NotContains(t, err.Error(), canary)
	}
	for n := range whole {
		isDamaged(whole[:n], "first %d bytes", n)
		altered := bytes.Clone(whole)
		altered[n] ^= 1
		isDamaged(altered, "byte %d", n)
	}
	other, err := s.Get(t.Context(), "secrets/other/000000000003.age")
	require.NoError(t, err)
	isDamaged(other)
	_, err = v.Get(t.Context(), "ca")
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeDamaged})
	require.ErrorContains(t, err, "it is secret other")
}

func TestParseKey(t *testing.T) {
	hybrid, err := age.GenerateHybridIdentity()
	require.NoError(t, err)
	_, text := key(t)
	for _, good := range []string{"# created: today\n" + string(text.Reveal()) + "\n", hybrid.String()} {
		k, err := store.ParseVaultKey(redact.New([]byte(good)))
		require.NoError(t, err)
		v := store.OpenVault(memory(t), k)
		require.NoError(t, v.Put(t.Context(), 3, "n", redact.New([]byte(canary))))
		got, err := v.Get(t.Context(), "n")
		require.NoError(t, err)
		require.Equal(t, canary, string(got.Reveal()))
	}
	valid := strings.TrimSpace(string(text.Reveal()))
	for _, bad := range []string{"", "# nothing\n", valid + "X", "hunter2", valid + "\n" + valid, "age1" + strings.Repeat("q", 58)} {
		_, err := store.ParseVaultKey(redact.New([]byte(bad)))
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeBadKey}, bad)
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "give the file that age-keygen wrote when the deployment was first installed")
		require.NotContains(t, err.Error(), "AGE-SECRET-KEY")
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestLocalKey(t *testing.T) {
	s := memory(t)
	var wg sync.WaitGroup
	keys := make([]*store.VaultKey, 20)
	for i := range keys {
		wg.Go(func() {
			k, err := store.LocalVaultKey(t.Context(), s)
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	require.NoError(t, store.OpenVault(s, keys[0]).Put(t.Context(), 3, "n", redact.New([]byte(canary))))
	for _, k := range keys {
		got, err := store.OpenVault(s, k).Get(t.Context(), "n")
		require.NoError(t, err)
		require.Equal(t, canary, string(got.Reveal()))
	}
	require.NoError(t, s.Put(t.Context(), "secrets/identity", []byte("broken")))
	_, err := store.LocalVaultKey(t.Context(), s)
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeBadKey})
	names, err := store.OpenVault(s, keys[0]).Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"n"}, names)
}
