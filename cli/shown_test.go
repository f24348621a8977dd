package cli

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestWhatOthersWroteDoesNothingToTheTerminal, wherever a command shows it.
func TestWhatOthersWroteDoesNothingToTheTerminal(t *testing.T) {
	const raw = "x\x1b]52;c;cm0=\a\x1b[2J\u009b31m\u202e\u200b\x00y"
	sum := string(bytes.Repeat([]byte("0"), 64))
	for name, list := range map[string]func(*bytes.Buffer, format) error{
		"bundle list": func(out *bytes.Buffer, as format) error {
			x := bundle.Index{
				Files:  []bundle.File{{Kind: bundle.Tool, Name: raw, Version: raw, SHA256: sum}},
				Images: []bundle.Image{{Name: raw, Ref: "a:" + raw, Digest: "sha256:" + sum, StandsFor: []string{raw, raw}}},
			}
			return as.print(out, x, func(w io.Writer) error { return listBundle(w, x) })
		},
		"backups": func(out *bytes.Buffer, as format) error {
			x := []contract.BackupSummary{{ID: raw, Time: time.Now(), Reason: raw, From: raw, To: raw}, {ID: raw, Problem: raw}}
			return as.print(out, x, func(w io.Writer) error { return listBackups(w, x) })
		},
		"runs": func(out *bytes.Buffer, as format) error {
			x := []contract.RunSummary{{ID: raw, Problem: raw}, {ID: raw, Workflow: raw}}
			return as.print(out, x, func(w io.Writer) error { return listRuns(w, x) })
		},
		"runs show": func(out *bytes.Buffer, as format) error {
			x := &contract.RunDetail{Problems: []string{raw}}
			return as.print(out, x, func(w io.Writer) error { return showRun(w, x) })
		},
		"plan": func(out *bytes.Buffer, as format) error {
			x := &contract.Preview{Workflow: raw, Deployment: raw}
			return as.print(out, x, x.Text)
		},
	} {
		var out bytes.Buffer
		require.NoError(t, list(&out, "text"), name)
		require.Contains(t, out.String(), "xy", name)
		require.Equal(t, redact.Printable(out.String()), out.String(), name)
	}
}
