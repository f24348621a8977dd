package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
)

type record struct {
	Name string `json:"name"`
	N    int    `json:"n,omitempty"`
}

func sealed(t *testing.T) []byte {
	t.Helper()
	data, err := store.Seal("test", 3, record{"<a&b>", 1})
	require.NoError(t, err)
	return data
}

// reason returns the beginning of what is wrong with a record.
func reason(t *testing.T, err error) string {
	t.Helper()
	e, ok := errors.AsType[*store.RecordError](err)
	require.True(t, ok, "%v", err)
	is, _, found := strings.Cut(strings.TrimPrefix(e.Error(), "it is "), ":")
	require.True(t, found, "%v", err)
	return is
}

func TestUnseal(t *testing.T) {
	var got record
	require.NoError(t, store.Unseal(sealed(t), "test", 3, &got))
	require.Equal(t, record{"<a&b>", 1}, got)
	require.Equal(t, "foreign", reason(t, store.Unseal(sealed(t), "other", 3, &got)))
	require.Equal(t, "foreign", reason(t, store.Unseal(sealed(t), "test", 2, &got)))
	require.Equal(t, "foreign", reason(t, store.Unseal(sealed(t), "test", 3, new(int))))
	require.Equal(t, "foreign", reason(t, store.Unseal([]byte("{}\n"), "test", 3, &got)))
	_, err := store.Seal("test", 1, func() {})
	require.Error(t, err)
}

func TestUnseal_tornAnywhere(t *testing.T) {
	whole := sealed(t)
	var got record
	for n := range len(whole) - 1 { // the line break at its end says nothing
		require.Equal(t, "torn", reason(t, store.Unseal(whole[:n], "test", 3, &got)), "first %d bytes", n)
	}
	require.Equal(t, "torn", reason(t, store.Unseal(append(whole, whole...), "test", 3, &got)), "twice")
}

func TestUnseal_alteredAnywhere(t *testing.T) {
	whole := sealed(t)
	for i := range whole {
		for bit := range 8 {
			altered := append([]byte(nil), whole...)
			altered[i] ^= 1 << bit
			var got record
			if err := store.Unseal(altered, "test", 3, &got); err != nil {
				require.NotEmpty(t, reason(t, err), "%q", altered)
			} else { // a byte that means nothing
				require.Equal(t, record{"<a&b>", 1}, got, "%q", altered)
			}
		}
	}
}
