package incontainer

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
)

func TestVerifyProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen strings.Builder
		p := &verifyProgress{screen: &screen, running: map[string]bool{}}
		p.note("pre/tls", pipeline.Running)
		p.note("pre/secrets", pipeline.Running)
		time.Sleep(sayEvery)
		p.note("pre/tls", pipeline.Reused)
		p.note("pre/gitea", pipeline.Running)
		p.note("pre/secrets", pipeline.Failed)
		require.Equal(t, "slipway: infrastructure/verify: 0 earlier results hold; looking at pre/tls\n"+
			"slipway: infrastructure/verify: 1 earlier results hold; looking at pre/secrets\n", screen.String())
	})
}
