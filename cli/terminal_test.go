package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestWhatOthersWroteDoesNothingToTheTerminal, wherever a command shows it.
func TestWhatOthersWroteDoesNothingToTheTerminal(t *testing.T) {
	const raw = "x\x1b]52;c;cm0=\a\x1b[2J\u009b31m\u202e\u200b\x00y"
	for name, list := range map[string]func(*bytes.Buffer, console.Format) error{
		"backups": func(out *bytes.Buffer, as console.Format) error {
			x := []contract.BackupSummary{{ID: raw, Time: time.Now(), Reason: raw, From: raw, To: raw}, {ID: raw, Problem: raw}}
			return as.Print(out, x, func(w io.Writer) error { return listBackups(w, x) })
		},
		"runs": func(out *bytes.Buffer, as console.Format) error {
			x := []contract.RunSummary{{ID: raw, Problem: raw}, {ID: raw, Workflow: raw}}
			return as.Print(out, x, func(w io.Writer) error { return listRuns(w, x) })
		},
		"runs show": func(out *bytes.Buffer, as console.Format) error {
			x := &contract.RunDetail{Problem: raw}
			return as.Print(out, x, func(w io.Writer) error { return showRun(w, x) })
		},
		"plan": func(out *bytes.Buffer, as console.Format) error {
			x := &contract.Plan{Workflow: raw, Deployment: raw}
			return as.Print(out, x, x.Text)
		},
	} {
		var out bytes.Buffer
		require.NoError(t, list(&out, "text"), name)
		require.Contains(t, out.String(), "xy", name)
		require.Equal(t, redact.Printable(out.String()), out.String(), name)
	}
}

// TestWhatLibrariesLogDoesNothingToTheTerminal: kustomize and Helm quote names and values.
func TestWhatLibrariesLogDoesNothingToTheTerminal(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"platform.yaml": `apiVersion: slipway/v2
name: evil
version: 1.0.0
description: x
namespaces: [{name: evil}]
components:
  - {name: m, kind: manifests, path: m, namespace: evil}
  - {name: c, kind: chart, path: c, namespace: evil, valuesFiles: [v.yaml]}
`,
		"m/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"m/kustomization.yaml": "resources: [a.yaml]\n" +
			`vars: [{name: "V\e]0;pwned\a\e[2J\e[31mRED", objref: {apiVersion: v1, kind: ConfigMap, name: a}, fieldref: {fieldpath: metadata.name}}]` + "\n",
		"c/Chart.yaml":       "apiVersion: v2\nname: c\nversion: 1.0.0\n",
		"c/values.yaml":      `z: {t: {password: "\e[31mhunter2"}}` + "\n",
		"c/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"v.yaml":             "z: {t: text}\n",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	code, _, errs := slipway("validate", "--platform", dir)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "vars that were never replaced: VRED")
	require.Contains(t, errs, "cannot overwrite table with non table for c.z.t")
	require.NotContains(t, errs, "hunter2")
	require.Equal(t, redact.Printable(errs), errs)
}
