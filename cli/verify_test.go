package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestVerify_nothingHolds: of a deployment that is not there nothing can be reused,
// and that is no error.
func TestVerify_nothingHolds(t *testing.T) {
	dir := t.TempDir()
	root, release := filepath.Join(dir, "state"), filepath.Join(dir, "platform")
	plan, result := filepath.Join(dir, "plan.json"), filepath.Join(dir, "verified.json")
	require.NoError(t, os.Mkdir(root, 0o700))
	fsys, err := reference.Release(config.Default().Platform.Release)
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(release, fsys))
	text, err := json.Marshal(contract.Plan{Run: "r2", Config: config.Default().Canonical(), Images: "sha256:1", Release: "sha256:2"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(plan, text, 0o600))

	code, _, errs := slipway("verify", "--root", root, "--platform", release, plan, result)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "slipway: infrastructure/verify: 0 earlier results hold; looking at infrastructure/preflight\n")
	require.Contains(t, errs, "slipway: infrastructure/verify: 0 of 16 earlier results hold\n")
	text, err = os.ReadFile(result)
	require.NoError(t, err)
	var found contract.Verified
	require.NoError(t, json.Unmarshal(text, &found))
	require.Empty(t, found.Steps)
	log, err := os.ReadFile(filepath.Join(root, "runs/r2/steps/infrastructure.preflight/log.txt"))
	require.NoError(t, err)
	require.Contains(t, string(log), "the journal has no record of the step")
	require.NoDirExists(t, filepath.Join(root, "runs/r2/steps/infrastructure.cluster"), "it needs one that does not hold")

	t.Run("without the release", func(t *testing.T) {
		code, _, errs := slipway("verify", "--root", root, "--platform", filepath.Join(dir, "none"), plan, result)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "slipway-fault: {", "the conductor is told")
	})
	t.Run("without a plan", func(t *testing.T) {
		code, _, errs := slipway("verify", filepath.Join(dir, "none.json"), result)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "read the plan")
		code, _, errs = slipway("verify", plan)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "give: PLAN RESULT")
	})
}

func TestLooker(t *testing.T) {
	var screen strings.Builder
	l := &looker{screen: &screen, running: map[string]bool{}}
	for _, e := range []struct {
		name   string
		status pipeline.Status
	}{
		{"tls", pipeline.Running}, {"secrets", pipeline.Running}, {"tls", pipeline.Reused}, {"secrets", pipeline.Failed}, {"gitea", pipeline.Blocked},
	} {
		l.observe(pipeline.Event{Status: e.status, Result: pipeline.Result{Key: pipeline.Key{Stage: "pre", Name: e.name}}})
	}
	require.Equal(t, "slipway: infrastructure/verify: 0 earlier results hold; looking at pre/tls\n"+
		"slipway: infrastructure/verify: 0 earlier results hold; looking at pre/secrets, pre/tls\n"+
		"slipway: infrastructure/verify: 1 earlier results hold; looking at pre/secrets\n", screen.String())
}
