package step_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestAStepKnowsWhetherOneBeforeItWasKilled: itself, or another one of its stage
// in an earlier run.
func TestAStepKnowsWhetherOneBeforeItWasKilled(t *testing.T) {
	for what, c := range map[string]struct {
		stage, step, run string
		ended, torn      bool
		want             bool
	}{
		"nothing before":              {},
		"itself":                      {stage: "stage", step: "measure", run: "r0", want: true},
		"itself, and it ended":        {stage: "stage", step: "measure", run: "r0", ended: true},
		"another one":                 {stage: "stage", step: "always", run: "r0", want: true},
		"another one, and it ended":   {stage: "stage", step: "always", run: "r0", ended: true},
		"another one of this run":     {stage: "stage", step: "always", run: "r1"},
		"another one of other stages": {stage: "other", step: "always", run: "r0"},
		"a record that is torn":       {stage: "stage", step: "always", run: "r0", torn: true},
	} {
		t.Run(what, func(t *testing.T) {
			bucket := t.TempDir()
			t.Setenv(contract.StateURLVariable, "file://"+bucket)
			s, err := store.Open(t.Context(), "file://"+bucket, store.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			if ledger := journal.On(s, "test"); c.run != "" {
				attempt, err := ledger.Begin(t.Context(), c.run, c.stage, c.step, digests("d0"))
				require.NoError(t, err)
				if c.ended {
					require.NoError(t, ledger.End(t.Context(), attempt, nil, nil))
				}
			}
			if c.torn {
				require.NoError(t, os.WriteFile(filepath.Join(bucket, "journal/stage.always/000000000000.json"), []byte("{"), 0o600))
			}
			b, asked := newBench(t), false
			b.do = func(ctx context.Context, env *step.Env) {
				asked = true
				got, err := env.Killed(ctx, "measure", "always")
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			}
			code, _ := b.run(contract.Request{Digests: digests("d1")})
			require.Zero(t, code, b.shown.String())
			require.True(t, asked)
		})
	}
}
