package bounded_test

import (
	"archive/zip"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
)

// TestAnArchiveThatUnpacksToMore than it is: whoever may write the state could fill the disk on
// which a rollback unpacks it.
func TestAnArchiveThatUnpacksToMore(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	to, err := w.Create("platform.yaml") // compressed
	require.NoError(t, err)
	_, err = to.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = bounded.Unpack(b.Bytes())
	require.ErrorIs(t, err, bounded.ErrTooLarge)
	require.ErrorContains(t, err, "platform.yaml")
}
