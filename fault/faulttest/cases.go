package faulttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/slipway-sh/slipway/config/document"
)

// Case is a broken document.
type Case struct {
	Name string // without an extension
	Text []byte
	Want string // as Problems tells it
}

// want is the extension under which an archive has what is wrong with a document.
const want = ".want"

// Cases reads all archives in a directory: NAME.want with the problems follows each NAME.yaml.
func Cases(t testing.TB, dir string) (all []Case) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	seen := map[string]bool{}
	for _, file := range archives {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for i := 0; i+1 < len(archive.Files); i += 2 {
			text, problems := archive.Files[i], archive.Files[i+1]
			name := strings.TrimSuffix(text.Name, ".yaml")
			require.Equal(t, name+want, problems.Name, "in %s", file)
			require.False(t, seen[name], "%s is there twice", name)
			seen[name] = true
			all = append(all, Case{name, text.Data, string(problems.Data)})
		}
	}
	return all
}

// Problems lists the problems of a document, one per line: line, field and what is allowed there.
// For an error without problems it returns the error's text.
func Problems(err error) string {
	invalid, ok := errors.AsType[*document.Invalid](err)
	if !ok {
		return err.Error() + "\n"
	}
	var out strings.Builder
	for _, p := range invalid.Problems {
		fmt.Fprintf(&out, "%d %s: %s\n", p.Line, p.Field, p.Want)
	}
	return out.String()
}

// Update rewrites the expected problems in all archives; told has them by the document's name.
func Update(t testing.TB, dir string, told map[string]string) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	require.NoError(t, err)
	for _, file := range archives {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for i, f := range archive.Files {
			if text, ok := told[strings.TrimSuffix(f.Name, want)]; ok && strings.HasSuffix(f.Name, want) {
				archive.Files[i].Data = []byte(text)
			}
		}
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
	}
}
