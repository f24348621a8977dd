package e2e

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

const ctrlC = "\x03"

// interrupts presses Ctrl-C in installs as a person at a terminal does. Each continues where
// the one before was. A collector gets their telemetry, and none of the canaries in it.
func interrupts(t *testing.T, d deployment, got *telemetry) {
	config := write(t, canaried)
	install := func(t *testing.T) *terminal {
		t.Helper()
		cmd := d.CLI(t.Context(), "install", "--config", config)
		cmd.Env = append(append(cmd.Env, got.env...), "SLIPWAY_E2E_TOKEN="+canaryToken)
		return onTerminal(t, cmd)
	}

	t.Run("Ctrl-C twice: it ends at once", long(func(t *testing.T) {
		p := install(t)
		p.until(t, `\ds  preorchestrator/argocd`) // it runs, for long
		p.press(t, ctrlC)
		p.until(t, "interrupt again to stop at once") // two signals at the same moment are one
		p.press(t, ctrlC)
		code, text := p.wait(t, callLimit)
		require.Equal(t, 7, code, slipway.Tail(text))
		require.Contains(t, text, "error RUN-001")
		require.Regexp(t, `steps interrupted: [1-9]`, text)
		d.printed.add(text)
	}))

	t.Run("Ctrl-C once: what runs ends, and it says what is left", func(t *testing.T) {
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
		d.printed.add(text)
	})

	t.Run("no canary is in what a collector of telemetry gets", got.requireNoCanary)

	t.Run("the hook's secret is in no record", func(t *testing.T) {
		k := &kept{deployment: d, config: config}
		k.Env = append(slices.Clone(d.Env), "SLIPWAY_E2E_TOKEN="+canaryToken)
		places := k.records(t)
		places["what commands printed"] = d.printed.String()
		requireNone(t, map[string][]string{"canary of the hook's secrets": forms(canaryToken)}, places)
		for _, of := range []string{"the report's ", "the package's own ", "the state volume's "} {
			told := func(name string) bool {
				missing := func(line *regexp.Regexp) bool { return !line.MatchString(places[name]) }
				return strings.HasPrefix(name, of) && strings.HasSuffix(name, "hooks/canary.txt") && !slices.ContainsFunc(masked, missing)
			}
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(places)), told), "%s what the hook printed", of)
		}
	})
}
