package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
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

func meaning(c fault.Class) string {
	return cmp.Or(map[fault.Class]string{
		fault.OK:        "all went well",
		fault.Bug:       "a bug in Slipway",
		fault.Usage:     "command line or configuration",
		fault.Preflight: "the environment does not meet the requirements",
		fault.Step:      "a step failed",
		fault.Timeout:   "something did not happen in time",
		fault.Locked:    "another run works on the deployment",
		fault.Cancelled: "cancelled",
	}[c], "unknown")
}

// indented returns text with all lines but the first indented.
func indented(s string) string {
	return strings.ReplaceAll(strings.TrimRight(Clean(s), "\n"), "\n", "\n  ")
}

// Clean removes whatever moves the cursor, changes colours or reverses the reading
// direction; see redact.Printable. A tab is a space.
func Clean(s string) string { return strings.ReplaceAll(redact.Printable(s), "\t", " ") }

// firstLine returns the first non-empty line of s.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(Clean(s)), "\n")
	return line
}

// beginning is s or, where it has more than 200 characters, the words that fit into them.
func beginning(s string) string {
	const most = 200
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	cut := string(r[:most])
	if at := strings.LastIndexAny(cut, " \n"); at > 0 && r[most] != ' ' && r[most] != '\n' {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " \n") + " …"
}
