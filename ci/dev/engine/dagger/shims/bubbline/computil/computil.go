// Package computil finds the word under the cursor.
package computil

import "strings"

// Flatten joins the lines and returns the offset of line and col in the result,
// in bytes.
func Flatten(input [][]rune, line, col int) (string, int) {
	var b strings.Builder
	at := 0
	for i, l := range input {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == line {
			at = b.Len() + len(string(l[:min(col, len(l))]))
		}
		b.WriteString(string(l))
	}
	return b.String(), at
}

// FindWord is the word around the cursor with its half-open range of columns.
func FindWord(input [][]rune, line, col int) (word string, start, end int) {
	if line >= len(input) {
		return "", col, col
	}
	l := input[line]
	start, end = min(col, len(l)), min(col, len(l))
	for start > 0 && l[start-1] != ' ' {
		start--
	}
	for end < len(l) && l[end] != ' ' {
		end++
	}
	return string(l[start:end]), start, end
}
