package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestPartsArePutTogether(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		parts int
	}{
		"nothing":             {"", 1},
		"one part":            {strings.Repeat("x", partSize), 1},
		"one byte more":       {strings.Repeat("x", partSize) + "y", 2},
		"three megabyte":      {strings.Repeat(`{"name":"ünïcödé"},`, 3<<20/23), 25},
		"a letter at the cut": {strings.Repeat("x", partSize-1) + "é", 2},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "request.json")
			parts := Parts(file, c.text)
			require.Len(t, parts, c.parts)
			require.Contains(t, parts, file)
			for name, text := range parts {
				require.LessOrEqual(t, len(text), partSize, name)
				require.True(t, utf8.ValidString(text), "what is no UTF-8 does not pass the engine")
				require.NoError(t, os.WriteFile(name, []byte(text), 0o400))
			}
			got, err := ReadParts(file)
			require.NoError(t, err)
			require.Equal(t, c.text, string(got))
		})
	}
}

func TestPartsThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "request.json")
	_, err := ReadParts(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o400))
	require.NoError(t, os.Mkdir(file+".1", 0o700))
	_, err = ReadParts(file)
	require.ErrorContains(t, err, "request.json.1")
}
