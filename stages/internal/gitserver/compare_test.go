package gitserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/gitserver"
)

func TestCompareTellsWhatAPushWouldChange(t *testing.T) {
	s, _ := newGit(t)
	tree := gitserver.Tree{"apps/web.yaml": []byte("a: 1\n"), "old": []byte("x"), "README": []byte("hello\n")}
	got, err := s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.NoError(t, err)
	require.Equal(t, gitserver.Comparison{Added: []string{"README", "apps/web.yaml", "old"}}, got)

	revision, _, err := s.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	got, err = s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.NoError(t, err)
	require.Equal(t, gitserver.Comparison{Revision: revision}, got)

	delete(tree, "old")
	tree["apps/web.yaml"], tree["apps/new.yaml"] = []byte("a: 2\n"), nil
	got, err = s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.NoError(t, err)
	require.Equal(t, gitserver.Comparison{
		Revision: revision, Added: []string{"apps/new.yaml"}, Changed: []string{"apps/web.yaml"}, Removed: []string{"old"},
	}, got)
	head, _, err := s.Head(t.Context(), "slipway/platform", "main")
	require.NoError(t, err)
	require.Equal(t, revision, head, "nothing was pushed")

	_, err = s.Compare(t.Context(), "slipway/nothere", "main", tree)
	require.ErrorContains(t, err, "slipway/nothere")
}
