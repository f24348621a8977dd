package cli

import (
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

	code, out, errs := slipway("clients", "--out", t.TempDir())
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "give --bundle DIR")
	require.Empty(t, out)
}
