package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
)

// TestState_report: what a run keeps is one record; a report is everything that
// is made from it.
func TestState_report(t *testing.T) {
	root, out, file := t.TempDir(), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "keep.json")
	code, _, errs := slipway("state", "--root", root, "report", out)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "\nerror DEP-001: no run was recorded\n")

	r := &report.Run{ID: "20260102-030405-a1b2c3", Workflow: "install", Deployment: "blue", Started: time.Now()}
	r.Plan([]pipeline.Node{{Key: pipeline.Key{Stage: "a", Name: "b"}}})
	r.Finish(nil, nil, time.Now())
	record, err := r.Encode()
	require.NoError(t, err)
	kept, err := json.Marshal(stages.Kept{Run: r.ID, Files: map[string]string{report.RecordFile: string(record)}, Runtime: "version: 1\n"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, kept, 0o600))
	code, _, errs = slipway("state", "--root", root, "keep", file)
	require.Zero(t, code, errs)

	code, _, errs = slipway("state", "--root", root, "report", out)
	require.Zero(t, code, errs)
	for _, name := range []string{"report.json", "report.html", "junit.xml", "summary.md", "summary.txt", "state.yaml"} {
		require.FileExists(t, filepath.Join(out, name))
	}
	id, err := os.ReadFile(out + ".id")
	require.NoError(t, err)
	require.Equal(t, r.ID, string(id))
	entries, err := os.ReadDir(filepath.Join(root, "runs", r.ID))
	require.NoError(t, err)
	require.Len(t, entries, 1, "the volume keeps what cannot be made again")

	code, _, errs = slipway("state", "--root", root, "show", file)
	require.Zero(t, code, errs)
	shown, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(shown), `"outcome":"succeeded"`)
}
