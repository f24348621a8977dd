package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPackageThatIsWrongForOneSystem is one that main imports.
func TestAPackageThatIsWrongForOneSystem(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example.com/m\n\ngo 1.26.0\n",
		"main.go":          "package main\n\nimport \"example.com/m/p\"\n\nfunc main() { p.Do() }\n",
		"p/p.go":           "package p\n\nfunc Do() { do() }\n",
		"p/do_linux.go":    "package p\n\nfunc do() {}\n",
		"p/do_windows.go":  "package p\n\nfunc do() { return 1 }\n",
		"p/other_plan9.go": "package p\n\nfunc other() { undefined() }\n",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	require.NoError(t, check(dir, "linux/arm64"))
	require.ErrorContains(t, check(dir, "windows/amd64"), "do_windows.go:3:20: too many return values")
	require.ErrorContains(t, check(dir, "darwin/arm64"), "undefined: do")
	require.Error(t, check(dir, "toaster/amd64"))
}
