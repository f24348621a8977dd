package step

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbersOfAnInputKeepTheirDigits on the way into a container.
func TestNumbersOfAnInputKeepTheirDigits(t *testing.T) {
	var in struct {
		Fill map[string]any `json:"fill"`
	}
	require.NoError(t, decode([]byte(`{"fill": {"settings.id": 9007199254740993}}`), &in))
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"fill": {"settings.id": 9007199254740993}}`, string(text))
	require.Contains(t, string(text), "9007199254740993")
}
