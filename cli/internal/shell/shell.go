// Package shell quotes words for a POSIX shell.
package shell

import (
	"regexp"
	"strings"
)

// Quote is s as one word of a shell.
func Quote(s string) string {
	if regexp.MustCompile(`^[\w@%+=:,./~-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
