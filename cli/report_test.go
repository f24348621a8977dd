package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// exported is a directory that holds a report of a run.
func exported(t *testing.T, run string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "report")
	write := writeReport(t, run)
	require.NoError(t, write(dir))
	return dir
}

func writeReport(t *testing.T, run string) func(string) error {
	t.Helper()
	r := &report.Run{ID: run, Outcome: report.Succeeded}
	record, err := r.Encode()
	require.NoError(t, err)
	return func(dir string) error {
		return errors.Join(os.MkdirAll(filepath.Join(dir, "steps", run), 0o755),
			os.WriteFile(filepath.Join(dir, report.RecordFile), record, 0o644))
	}
}

// A directory with something else in it is refused before anything starts.
func TestAReportGoesIntoADirectoryOfItsOwn(t *testing.T) {
	mine := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(mine, "notes.txt"), nil, 0o600))
	mixed := exported(t, "r1")
	require.NoError(t, os.WriteFile(filepath.Join(mixed, "notes.txt"), nil, 0o600))
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "report.json"), []byte(`{"tests": 3}`), 0o600))
	file := filepath.Join(mine, "notes.txt")
	for dir, says := range map[string]string{mine: "it holds notes.txt", mixed: "it holds notes.txt", other: "version 0", file: "not a directory"} {
		require.ErrorIs(t, forReport(dir), &fault.Fault{Code: atomicfile.CodeUnwritten})
		code, _, errs := slipway("report", "--out", dir)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "error RUN-008: write the report to "+dir)
		require.Contains(t, errs, says)
		require.Contains(t, errs, "remedy: name a directory that does not exist")
	}
	code, _, errs := slipway("report", "--out", "")
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "--out is empty; give a directory")
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "new"), exported(t, "r1")} {
		require.NoError(t, forReport(dir))
	}
}

func TestAnEarlierReportIsReplacedAsAWhole(t *testing.T) {
	for what, dir := range map[string]string{
		"earlier": exported(t, "r1"), "new": filepath.Join(t.TempDir(), "a", "b"), "empty": t.TempDir(),
	} {
		require.NoError(t, replace(dir, writeReport(t, "r2")), what)
		require.FileExists(t, filepath.Join(dir, report.RecordFile), what)
		require.DirExists(t, filepath.Join(dir, "steps", "r2"), what)
		require.NoDirExists(t, filepath.Join(dir, "steps", "r1"), what)
	}

	dir := exported(t, "r1")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	require.NoError(t, replace(link, writeReport(t, "r2")))
	require.DirExists(t, filepath.Join(dir, "steps", "r2"), "where the link points to")

	err := replace(dir, func(fresh string) error {
		return errors.Join(writeReport(t, "r3")(fresh), errors.New("the engine is gone"))
	})
	require.ErrorContains(t, err, "the engine is gone")
	require.DirExists(t, filepath.Join(dir, "steps", "r2"), "it is as it was")
	require.NoDirExists(t, filepath.Join(dir, "steps", "r3"))

	err = replace(dir, func(fresh string) error {
		return errors.Join(writeReport(t, "r3")(fresh), os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	})
	require.ErrorIs(t, err, &fault.Fault{Code: atomicfile.CodeUnwritten}, "somebody put something there meanwhile")
	require.FileExists(t, filepath.Join(dir, "notes.txt"))
	require.DirExists(t, filepath.Join(dir, "steps", "r2"))
}
