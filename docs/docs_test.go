// Package docs holds the pages for people; its tests compare them with the code.
package docs

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrors_complete: errors.md has one row for each code in the code, and none
// for others.
func TestErrors_complete(t *testing.T) {
	page, err := os.ReadFile("errors.md")
	require.NoError(t, err)
	rows := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]{2,5}-\d{3}) \|`).FindAllSubmatch(page, -1) {
		rows[string(m[1])]++
	}
	used := codes(t, "..")
	require.Greater(t, len(used), 20, "codes found in the code")
	for code, n := range rows {
		require.Equal(t, 1, n, "rows of %s", code)
		require.Contains(t, used, code, "errors.md has a row for a code that nothing uses")
	}
	for _, code := range slices.Sorted(maps.Keys(used)) {
		require.Contains(t, rows, code, "errors.md has no row for the code of %s", used[code])
	}
}

// codes are the fault codes in the Go files below root, with a file that has it.
func codes(t *testing.T, root string) map[string]string {
	t.Helper()
	quoted := regexp.MustCompile(`"([A-Z]{2,5}-\d{3})"`)
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
				continue
			}
			line, _, _ = bytes.Cut(line, []byte(" // "))
			for _, m := range quoted.FindAllSubmatch(line, -1) {
				out[string(m[1])] = path
			}
		}
		return err
	})
	require.NoError(t, err)
	return out
}
