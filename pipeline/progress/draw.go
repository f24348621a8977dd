package progress

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Control sequences that every terminal since the VT100 understands.
const (
	clearBelow = "\r\x1b[J" // from the beginning of the cursor's line to the end of the screen
	reset      = "\x1b[0m"
	red        = "\x1b[31m"
	yellow     = "\x1b[33m"
)

// frame replaces the block at the cursor with permanent lines and a new block.
//
// The cursor rests on the first line of the block, not below the last one: when a
// terminal changes its width it moves the cursor with the text, so the next frame
// finds the beginning of the block no matter how its lines were wrapped. Between
// frames the terminal is in its normal state, so nothing has to be restored if the
// process dies.
func frame(above string, block []string) string {
	var b strings.Builder
	b.WriteString(clearBelow)
	b.WriteString(above)
	b.WriteString(strings.Join(block, "\n"))
	b.WriteByte('\r')
	for range len(block) - 1 {
		b.WriteString("\x1b[A")
	}
	return b.String()
}

// coloured returns the line of a step that ended, coloured by its status.
func coloured(line string, status pipeline.Status) string {
	switch status {
	case pipeline.Succeeded, pipeline.Reused, pipeline.Skipped, pipeline.Cancelled:
		return line
	case pipeline.Failed:
		return red + line + reset
	}
	return yellow + line + reset
}

// fit cuts s to width columns.
func fit(s string, width int) string { return ansi.Truncate(s, width, "…") }

// printable returns s on one line, without anything that moves the cursor or changes
// colours.
func printable(s string) string { return redact.OneLine(s) }
