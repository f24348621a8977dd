package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdditions(t *testing.T) {
	of := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	made := func(a Additions, before, after string) bool {
		t.Helper()
		ok, err := a.Made(before, after)
		require.NoError(t, err)
		return ok
	}
	a := Additions(filepath.Join(t.TempDir(), "folder", "bundles"))
	require.False(t, made(a, of("1"), of("2")), "there is no folder yet")
	require.NoError(t, a.Keep(of("1"), of("2")))
	require.NoError(t, a.Keep(of("2"), of("3")))
	require.NoError(t, a.Keep(of("3"), of("3")), "nothing was added")
	require.True(t, made(a, of("1"), of("2")))
	require.True(t, made(a, of("1"), of("3")), "in two steps")
	require.False(t, made(a, of("3"), of("1")), "not the other way round")
	require.False(t, made(a, of("4"), of("3")))

	require.NoError(t, a.Keep(of("3"), of("1"))) // an image was replaced, and then again
	require.False(t, made(a, of("4"), of("3")), "a circle ends")

	require.NoError(t, Additions("").Keep(of("1"), of("2")))
	require.False(t, made("", of("1"), of("2")))
	_, err := a.Made(of("1"), "../current")
	require.ErrorContains(t, err, "no digest")
	require.NoError(t, os.WriteFile(filepath.Join(string(a), strings.Repeat("5", 64)), []byte("x\n"), 0o600))
	_, err = a.Made(of("1"), of("5"))
	require.ErrorContains(t, err, "no digest", "a damaged file vouches for nothing")
}
