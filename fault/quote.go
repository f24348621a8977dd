package fault

import (
	"regexp"
	"strings"
)

// plainWord matches what is one word of a shell as it stands. A ~ in front would be a home.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-][\w@%+=:,./~-]*$`)

// Quote is s as one word of a POSIX shell: every value in a command that is printed to be copied
// goes through it.
func Quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
