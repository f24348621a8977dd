package step_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestStepsThatShareTheirCode: each has a journal, a log and a result of its own.
func TestStepsThatShareTheirCode(t *testing.T) {
	b := newBench(t)
	of := func(name, run string) contract.Request {
		return contract.Request{Run: run, Stage: "parts", Step: name, Code: "stage/measure", Digests: digests(name)}
	}
	for _, name := range []string{"bow", "stern"} {
		code, res := b.run(of(name, "r1"))
		require.Zero(t, code, b.shown.String())
		require.Equal(t, contract.Succeeded, res.Status)
		require.FileExists(t, b.path("state/journal/parts."+name+"/000000000000.json"))
		require.FileExists(t, b.path("state/runs/r1/steps/parts."+name+"/log.txt"))
	}
	require.Equal(t, 2, b.calls)
	_, res := b.run(of("bow", "r2"))
	require.Equal(t, contract.Reused, res.Status)
	require.Equal(t, 2, b.calls)
	require.NoFileExists(t, b.path("state/journal/stage.measure"))
}

func TestAStepWhoseCodeIsNotKnown(t *testing.T) {
	for code, says := range map[string]string{
		"stage/guess": `step "stage/guess" does not exist; there are stage/always, stage/measure`,
		"":            `step "parts/bow" does not exist`,
	} {
		b := newBench(t)
		_, res := b.run(contract.Request{Stage: "parts", Step: "bow", Code: code, Digests: digests("d")})
		require.ErrorIs(t, res.Fault, &fault.Fault{Code: "RUN-003"})
		require.ErrorContains(t, res.Fault, says)
		require.Zero(t, b.calls)
	}
	b := newBench(t)
	_, res := b.run(contract.Request{Stage: "parts", Step: "../bow", Code: "stage/measure", Digests: digests("d")})
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: "RUN-003"})
	require.ErrorContains(t, res.Fault, `step "parts/../bow" has no name for a file`)
	require.Zero(t, b.calls)
}
