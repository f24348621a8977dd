package render

import (
	"fmt"
	"regexp"
	"strings"
)

// plain is what kustomize takes as the name of a file in memory; of a directory, too.
var plain = regexp.MustCompile(`^[a-zA-Z0-9-_.:]+$`)

// legal is a path as the workspace has it. On a disk kustomize takes names with spaces, umlauts or
// a plus; these are written in other characters.
func legal(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "" || part == ".." || plain.MatchString(part) && !strings.Contains(part, "..") {
			continue
		}
		var b strings.Builder
		for _, c := range []byte(part) {
			if c != '_' && plain.Match([]byte{c}) {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "_%02x", c)
			}
		}
		parts[i] = strings.ReplaceAll(b.String(), "..", "._2e")
	}
	return strings.Join(parts, "/")
}
