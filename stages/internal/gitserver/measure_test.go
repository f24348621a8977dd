package gitserver

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPackIsMeasuredBeforeItIsUnpacked: by what it says of its objects, a delta of what it
// makes.
func TestAPackIsMeasuredBeforeItIsUnpacked(t *testing.T) {
	pack := func(objects uint32, parts ...[]byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), objects), bytes.Join(parts, nil)...)
	}
	packed := func(content []byte) []byte {
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		_, err := w.Write(content)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	blob := append([]byte{0x31}, packed([]byte("x"))...)
	delta := func(content []byte) []byte {
		return append([]byte{0x60 | byte(len(content)), byte(len(blob))}, packed(content)...)
	}
	require.NoError(t, measure(pack(2, blob, delta([]byte{1, 1, 1, 'y'}))))
	require.ErrorIs(t, measure(pack(1, []byte{0xb0, 0x80, 0x80, 0x80, 0x20})), errTooLarge, "a blob")
	require.ErrorIs(t, measure(pack(2, blob, delta([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x7f}))), errTooLarge, "a delta")
	require.ErrorIs(t, measure(pack(1<<20)), errTooLarge, "objects")
	require.Error(t, measure(pack(2, blob, delta([]byte{1}))))
	require.Error(t, measure(pack(1)))
	require.Error(t, measure(nil))
}
