package stages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

func TestEachAppHasItsDeadlineWithinTheStep(t *testing.T) {
	timeouts := config.Default().Advanced.Timeouts
	require.Equal(t, 20*time.Minute, syncTimeout(timeouts, 2), "the step's own is longer")
	require.Equal(t, 50*time.Minute, syncTimeout(timeouts, 9))
}
