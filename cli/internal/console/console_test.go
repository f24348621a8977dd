package console

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/progress"
)

func TestEngineLogShowsWhatStepsSay(t *testing.T) {
	var out bytes.Buffer
	screen := progress.Open(&out, progress.Options{})
	w := EngineLog(screen, false, "mine")
	for _, text := range []string{"12: noise\n34: [1.2s] | slipway: infrastru", "cture/terraform: apply\nslipway: no step\n", "slipway[theirs]: a/b: one\nslipway[mine]: a/b: two\n"} {
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.Equal(t, "     infrastructure/terraform: apply\n     a/b: two\n", out.String())
}
