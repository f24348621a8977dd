package report

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/slipway-sh/slipway/fault"
)

// Took formats a duration: "0.4s", "12s", "3m05s", "1h02m".
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
}

// short abbreviates a commit.
func short(revision string) string {
	if len(revision) == 40 {
		return revision[:10]
	}
	return revision
}

// at formats the time since the start of the run: "0:00", "1:05", "1:02:03".
func at(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	m, s := d/time.Minute, d%time.Minute/time.Second
	if m < 60 {
		return fmt.Sprintf("%d:%02d", m, s)
	}
	return fmt.Sprintf("%d:%02d:%02d", m/60, m%60, s)
}

// meaning describes an exit code.
func meaning(c fault.Class) string {
	switch c {
	case fault.OK:
		return "all went well"
	case fault.Bug:
		return "a bug in Slipway"
	case fault.Usage:
		return "command line or configuration"
	case fault.Preflight:
		return "the environment does not meet the requirements"
	case fault.Step:
		return "a step failed"
	case fault.Timeout:
		return "something did not happen in time"
	case fault.Locked:
		return "somebody else is working on the deployment"
	case fault.Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// escapes matches terminal escape sequences: CSI, strings (OSC, DCS, SOS, PM, APC) with
// their terminators, and the short ones.
var escapes = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]`)

// indented returns text with all lines but the first indented.
func indented(s string) string {
	return strings.ReplaceAll(strings.TrimRight(Clean(s), "\n"), "\n", "\n  ")
}

// Clean removes whatever moves the cursor, changes colours or reverses the reading
// direction.
func Clean(s string) string { return filter(s, ' ') }

// plain is Clean for logs: it retains tabs and turns carriage returns into line breaks.
func plain(s string) string {
	return filter(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"), '\t')
}

func filter(s string, tab rune) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return (r < ' ' || r > '~') && r != '\n' && r != tab }) {
		return s // the common case
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.ContainsAny(s, "\x1b\u009b") {
		s = escapes.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			return r
		case r == '\t':
			return tab
		}
		return -1
	}, s)
}

// firstLine returns the first non-empty line of s.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(Clean(s)), "\n")
	return line
}

// beginning is s, or its first 200 characters where it has more.
func beginning(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
