package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClients(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	code, _, errs := slipway("clients")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "clients needs --out DIR")
	code, _, errs = slipway("clients", "--out", t.TempDir(), "--bundle", t.TempDir())
	require.Equal(t, 3, code, errs)
	require.Contains(t, errs, "BUN-001")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slipway"), []byte("somebody else's"), 0o755))
	code, out, errs := slipway("clients", "--out", dir)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "RUN-008")
	require.Contains(t, errs, filepath.Join(dir, "slipway"))
	require.Empty(t, out)
}
