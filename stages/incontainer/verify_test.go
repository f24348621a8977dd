package incontainer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
)

func TestVerifyProgress(t *testing.T) {
	var screen strings.Builder
	p := &verifyProgress{screen: &screen, running: map[string]bool{}}
	for _, e := range []struct {
		name   string
		status pipeline.Status
	}{
		{"tls", pipeline.Running}, {"secrets", pipeline.Running}, {"tls", pipeline.Reused}, {"secrets", pipeline.Failed}, {"gitea", pipeline.Blocked},
	} {
		p.observe(pipeline.Event{Status: e.status, Result: pipeline.Result{Key: pipeline.Key{Stage: "pre", Name: e.name}}})
	}
	require.Equal(t, "slipway: infrastructure/verify: 0 earlier results hold; looking at pre/tls\n"+
		"slipway: infrastructure/verify: 0 earlier results hold; looking at pre/secrets, pre/tls\n"+
		"slipway: infrastructure/verify: 1 earlier results hold; looking at pre/secrets\n", screen.String())
}
