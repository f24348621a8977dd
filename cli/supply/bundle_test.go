package supply

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// TestAListedBundleDoesNothingToTheTerminal, whoever named what is in it.
func TestAListedBundleDoesNothingToTheTerminal(t *testing.T) {
	const raw = "x\x1b]52;c;cm0=\a\x1b[2J\u009b31m\u202e\u200b\x00y"
	sum := strings.Repeat("0", 64)
	x := bundle.Index{
		Files:  []bundle.File{{Kind: bundle.Tool, Name: raw, Version: raw, SHA256: sum}},
		Images: []bundle.Image{{Name: raw, Ref: "a:" + raw, Digest: "sha256:" + sum, StandsFor: []string{raw, raw}}},
	}
	var out bytes.Buffer
	as := console.Format("text")
	require.NoError(t, as.Print(&out, x, func(w io.Writer) error { return listBundle(w, x) }))
	require.Contains(t, out.String(), "xy")
	require.Equal(t, redact.Printable(out.String()), out.String())
}
