// Package history keeps the entries of a line editor in a file, one per line.
package history

import (
	"os"
	"strings"
)

// LoadHistory reads the entries, oldest first.
func LoadHistory(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' }), nil
}

// SaveHistory replaces the file.
func SaveHistory(entries []string, file string) error {
	return os.WriteFile(file, []byte(strings.Join(entries, "\n")+"\n"), 0o600)
}
