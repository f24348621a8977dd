package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Everything that is not as the lock says is named at once.
func TestLockVerifyNamesWhatDiffers(t *testing.T) {
	dir := smallBundle(t) // whose index names images that its archive does not hold
	code, _, errs := slipway("lock", "verify", "--bundle", dir)
	require.Equal(t, 3, code, errs)
	for _, says := range []string{
		"LCK-006", "compare this program with the bundle's: the bundle has none",
		"BUN-005", "tool terraform: is not in the bundle",
		"LCK-005", "image redis: ",
	} {
		require.Contains(t, errs, says)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "extra"), nil, 0o644))
	_, _, errs = slipway("lock", "verify", "--bundle", dir)
	require.Contains(t, errs, "BUN-003")
	require.Contains(t, errs, "extra is not in the index")
}
