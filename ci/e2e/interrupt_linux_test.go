package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/e2e/slipway"
)

const ctrlC = "\x03"

// TestCtrlC interrupts installs as a person at a terminal does. Each continues
// where the one before was.
func TestCtrlC(t *testing.T) {
	d := open(t, "e2e-ctrl-c")
	d.ok(t, "destroy") // whatever an earlier run of the tests left
	env, spans := collector(t)
	install := func(t *testing.T) *terminal {
		t.Helper()
		cmd := d.CLI(t.Context(), "install")
		cmd.Env = append(cmd.Env, env)
		return onTerminal(t, cmd)
	}

	t.Run("twice: it ends at once", func(t *testing.T) {
		p := install(t)
		p.until(t, `\ds  preorchestrator/argocd`) // it runs, for long
		p.press(t, ctrlC+ctrlC)
		start := time.Now()
		code, text := p.wait(t, time.Minute)
		require.Less(t, p.at.Sub(start), 5*time.Second, "%s", text)
		require.Equal(t, 7, code, slipway.Tail(text))
		require.Contains(t, text, "error RUN-001")
		require.Regexp(t, `steps interrupted: [1-9]`, text)
		d.said.add(text)
	})

	t.Run("once: what runs ends, and it says what is left", func(t *testing.T) {
		p := install(t)
		p.until(t, `\ds  preorchestrator/gitea`)
		p.press(t, ctrlC)
		p.until(t, "stopping after the steps that run now; interrupt again to stop at once")
		code, text := p.wait(t, callLimit)
		require.Equal(t, 7, code, slipway.Tail(text))
		require.Contains(t, text, "error RUN-001")
		require.Regexp(t, `steps interrupted: 0, not started: [1-9]`, text)
		require.Contains(t, text, "what is finished is not repeated")
		require.Regexp(t, `preorchestrator/gitea +succeeded`, text, "it was let finish")
		require.Regexp(t, `orchestrator/sync +cancelled`, text)
		d.said.add(text)
	})

	t.Run("the next one converges", func(t *testing.T) {
		code, text := install(t).wait(t, callLimit)
		require.Zero(t, code, slipway.Tail(text))
		require.Regexp(t, `preorchestrator/gitea +reused`, text)
		requireHealthy(t, d.status(t), apps...)
		d.said.add(text)
	})

	t.Run("no secret is anywhere but in the cluster", func(t *testing.T) {
		require.Contains(t, spans.String(), "orchestrator/sync", "the collector got the spans")
		d.requireNoLeak(t, map[string]string{"a span": spans.String()})
	})

	d.ok(t, "destroy")
}
