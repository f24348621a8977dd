package deployment

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages/conductor"
)

func TestWatchShowsFewOfTheLinesOfVerify(t *testing.T) {
	var out bytes.Buffer
	screen := progress.Open(&out, progress.Options{})
	watch(screen, &conductor.Options{})
	for range 3 {
		screen.Message("infrastructure/verify: looking")
	}
	require.Equal(t, "     infrastructure/verify: looking\n", out.String())
}
