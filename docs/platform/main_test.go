package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/docs/internal/reference"
)

func TestTheFilesAreThoseOfTheCode(t *testing.T) {
	t.Chdir("../..")
	files, err := generate()
	require.NoError(t, err)
	require.Len(t, files, 2)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("docs", name))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "docs/%s is not up to date: run make generate", name)
	}
	dir := t.TempDir()
	require.NoError(t, reference.Save(dir, files))
	require.FileExists(t, filepath.Join(dir, pageFile))
}

// TestEveryFieldIsDescribed in the schema, and by its path in its section of the page.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Chdir("../..")
	files, err := generate()
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(files[schemaFile], &s))
	page := string(files[pageFile])
	seen := 0
	var below func(path string, s *jsonschema.Schema)
	below = func(path string, s *jsonschema.Schema) {
		if s.Type == "array" && s.Items != nil {
			path, s = path+"[]", s.Items
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			at := strings.TrimPrefix(path+"."+p.Key, ".")
			_, row, nested := strings.Cut(at, ".") // below the heading of its section
			if !nested {
				row = at
			}
			require.NotEmpty(t, p.Value.Description, at)
			seen++
			if p.Value.Properties != nil || p.Value.Items != nil && p.Value.Items.Properties != nil {
				below(at, p.Value)
				continue
			}
			require.Contains(t, page, "| `"+row+"` |", at)
		}
	}
	below("", &s)
	require.Greater(t, seen, 90)
}

func TestConstantsHaveValuesAndComments(t *testing.T) {
	t.Chdir("../..")
	values, err := constants("Generate")
	require.NoError(t, err)
	require.Equal(t, constant{"password", "random letters and digits"}, values[0])
	_, err = constants("Nothing")
	require.ErrorContains(t, err, "config/platform has no constants Nothing")
}
