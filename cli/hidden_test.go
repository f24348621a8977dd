package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestState_report: what a run keeps is one record; a report is everything that
// is made from it.
func TestState_report(t *testing.T) {
	root, out, file := t.TempDir(), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "keep.json")
	code, _, errs := slipway("state", "--root", root, "--result", file, "report", `{"path":"`+out+`"}`)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "\nerror DEP-001: no run was recorded\n")

	r := &report.Run{ID: "20260102-030405-a1b2c3", Workflow: "install", Deployment: "blue", Started: time.Now()}
	r.Plan([]pipeline.Node{{Key: pipeline.Key{Stage: "a", Name: "b"}}})
	r.Finish(nil, nil, time.Now())
	record, err := r.Encode()
	require.NoError(t, err)
	kept, err := json.Marshal(contract.RunFiles{Run: r.ID, Files: map[string]string{report.RecordFile: string(record)}, Runtime: &contract.RuntimeState{}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, kept, 0o600))
	code, _, errs = slipway("state", "--root", root, "keep", `{"path":"`+file+`"}`)
	require.Equal(t, int(fault.Locked), code, errs)
	s, err := store.Open(t.Context(), "file://"+root, store.Options{})
	require.NoError(t, err)
	_, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: r.ID})
	require.NoError(t, err)
	code, _, errs = slipway("state", "--root", root, "keep", `{"path":"`+file+`"}`)
	require.Zero(t, code, errs)
	require.NoError(t, lease.Release(t.Context()))

	code, _, errs = slipway("state", "--root", root, "--result", file, "report", `{"path":"`+out+`"}`)
	require.Zero(t, code, errs)
	for _, name := range []string{"report.json", "report.html", "junit.xml", "summary.md", "summary.txt", "state.yaml"} {
		require.FileExists(t, filepath.Join(out, name))
	}
	id, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `"`+r.ID+`"`, string(id))
	entries, err := filepath.Glob(filepath.Join(root, "runs", r.ID, "[^.]*"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "the volume keeps what cannot be made again")

	code, _, errs = slipway("state", "--root", root, "--result", file, "show")
	require.Zero(t, code, errs)
	shown, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(shown), `"outcome":"succeeded"`)
}

// TestState_kubeconfig: a deployment without a cluster has none, which is no error.
func TestState_kubeconfig(t *testing.T) {
	root, file := t.TempDir(), filepath.Join(t.TempDir(), "kubeconfig")
	code, _, errs := slipway("state", "--root", root, "--result", file, "kubeconfig")
	require.Zero(t, code, errs)
	text, err := os.ReadFile(file)
	require.NoError(t, err, "it tells a file that could not be read from none")
	require.Equal(t, "null", string(text))
	require.NoError(t, os.Remove(file))

	require.NoError(t, os.Mkdir(filepath.Join(root, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "secrets/kubeconfig"), []byte("c4nary"), 0o600))
	code, out, errs := slipway("state", "--root", root, "--result", file, "kubeconfig")
	require.Zero(t, code, errs)
	require.NotContains(t, out+errs, "c4nary", "what is printed is in the engine's log")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	var access []byte
	require.NoError(t, json.Unmarshal(text, &access))
	require.Equal(t, "c4nary", string(access))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

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
	cfg := config.Default()
	cfg.Provider = "local"
	text, err := json.Marshal(contract.PlanRequest{
		Workflow: config.Install, Run: "r2", ConfigText: cfg.Canonical(), Verify: true,
		Inputs: contract.Inputs{Environment: contract.Environment{Cluster: providers.Cluster{Addons: &providers.Addons{}}}, ImagesDigest: "sha256:1", ReleaseDigest: "sha256:2"},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(plan, text, 0o600))

	code, _, errs := slipway("dry-run", "--root", root, "--platform", release, plan, result)
	require.Zero(t, code, errs)
	require.Regexp(t, `slipway: infrastructure/verify: 0 earlier results hold\n`, errs)
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
		code, _, errs := slipway("dry-run", "--root", root, "--platform", filepath.Join(dir, "none"), plan, result)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "slipway-fault: {", "the conductor is told")
	})
	t.Run("without a plan", func(t *testing.T) {
		code, _, errs := slipway("dry-run", "--root", root, filepath.Join(dir, "none.json"), result)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "read the request")
		code, _, errs = slipway("dry-run", plan)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "give: REQUEST RESULT")
	})
}

// TestStateFlags: a bucket that cannot be is refused before anything starts, and a
// URL is not shown.
func TestStateFlags(t *testing.T) {
	code, _, errs := slipway("status", "--state", "s3://me:hunter2@bucket")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-001")
	require.Contains(t, errs, "--state: got something else, want a bucket's URL, azblob://, gs://, s3://bucket (credentials do not belong in it")
	require.NotContains(t, errs, "hunter2")
}

// TestState_unreachable: a store that does not answer is a fault of class preflight
// before the lock is taken, which the conductor is told.
func TestState_unreachable(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "c4nary")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv(contract.StateURLVariable, "s3://bucket?region=x&use_path_style=true&endpoint=http://127.0.0.1:1&prefix=blue")
	code, _, errs := slipway("state", "--root", t.TempDir(), "hold", `{"who":{"run":"r1"}}`)
	require.Equal(t, int(fault.Preflight), code, errs)
	require.Contains(t, errs, string(store.CodeUnreachable))
	require.Contains(t, errs, `slipway-fault: {`)
	require.NotContains(t, errs, "c4nary")
}
