package docs

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingRecommendsAPrune: pruning the engine's cache removes every deployment.
func TestNothingRecommendsAPrune(t *testing.T) {
	const prune = "local-cache prune"
	root := os.DirFS("..")
	require.NoError(t, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		ext := path.Ext(name)
		if ext != ".go" && ext != ".md" && ext != ".yaml" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		for paragraph := range strings.SplitSeq(string(text), "\n\n") {
			if strings.Contains(paragraph, prune) {
				require.Equal(t, ".md", ext, "%s names the prune", name)
				require.Contains(t, paragraph, "removes every deployment", name)
			}
		}
		return err
	}))
}
