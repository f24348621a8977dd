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
	head, err := s.Head(t.Context(), "slipway/platform", "main")
	require.NoError(t, err)
	require.Equal(t, revision, head, "nothing was pushed")

	_, err = s.Compare(t.Context(), "slipway/nothere", "main", tree)
	require.ErrorContains(t, err, "slipway/nothere")
}

// TestABranchOfManyPages is read to its end.
func TestABranchOfManyPages(t *testing.T) {
	s, _ := pushed(t, `echo x > x; git add x
h=$(git rev-parse :x); for n in $(seq 1000 3200); do printf '100644 %s\td/%s\n' "$h" "$n"; done | git update-index --index-info`)
	got, err := s.Compare(t.Context(), "slipway/platform", "main", gitserver.Tree{"x": []byte("x\n"), "d/3200": []byte("x\n")})
	require.NoError(t, err)
	require.Empty(t, got.Changed)
	require.Empty(t, got.Added)
	require.Len(t, got.Removed, 2200)
}

// TestAPushReplacesWhateverIsThere: links, programs, modules, and folders by files and the other
// way round.
func TestAPushReplacesWhateverIsThere(t *testing.T) {
	s, sh := pushed(t, `mkdir -p folder/below; echo x > folder/below/x; echo x > file; echo x > run; chmod +x run; echo x > same; echo x > empty; ln -s same link; git add .
git update-index --add --cacheinfo "160000,$(git rev-parse :same),module"`)
	tree := gitserver.Tree{"folder": []byte("x\n"), "file/below": []byte("x\n"), "run": []byte("x\n"), "link": []byte("same"), "same": []byte("x\n"), "module": nil, "empty": nil}
	got, err := s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.NoError(t, err)
	require.Equal(t, []string{"empty", "link", "module", "run"}, got.Changed)
	_, changed, err := s.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.True(t, changed)
	sh(`test "$(git -C "$BARE" ls-tree -r main | cut -f 2 | tr '\n' ' ')" = "empty file/below folder link module run same "; test -z "$(git -C "$BARE" ls-tree -r main | grep -v ^100644)"`)
	_, changed, err = s.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.False(t, changed)
}

// TestAPushBesideAnotherOneFails, so that nobody waits for a tree that is not the release's.
func TestAPushBesideAnotherOneFails(t *testing.T) {
	f := &forge{t: t, bare: t.TempDir() + "/platform.git"}
	f.git(nil, "init", "-q", "--bare", "-b", "main", f.bare)
	s := serve(t, f)
	_, _, err := s.Push(t.Context(), "slipway/platform", "main", gitserver.Tree{"a": []byte("1")}, commit())
	require.NoError(t, err)
	f.before = func() {
		tree := f.git(nil, "rev-parse", "main^{tree}")
		f.git(nil, "update-ref", "refs/heads/main", f.git(nil, "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "-m", "other", "-p", "main", tree))
	}
	_, _, err = s.Push(t.Context(), "slipway/platform", "main", gitserver.Tree{"a": []byte("2")}, commit())
	require.ErrorContains(t, err, "push to slipway/platform: somebody else has pushed to it at the same time")
}
