package gitserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/gitserver"
)

const tooLarge = "it has more than 256 MiB or 100000 files"

// pushed is a server to which somebody has pushed what a script makes; sh runs another one.
func pushed(t *testing.T, script string) (s *gitserver.Server, sh func(script string)) {
	t.Helper()
	s, root := newGit(t)
	dir := t.TempDir()
	sh = func(script string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-euc", script)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=core.compression", "GIT_CONFIG_VALUE_1=1",
			"GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@x", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@x", "BARE="+filepath.Join(root, "slipway", "platform.git"))
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	sh(`git init -q -b main .; ` + script + `; git push -q "$BARE" "$(git commit-tree -m p "$(git write-tree)"):refs/heads/main"`)
	return s, sh
}

// TestAPushOfZerosTakesNoMemory, whether the server can leave files out or not, and the next
// install replaces it.
func TestAPushOfZerosTakesNoMemory(t *testing.T) {
	s, sh := pushed(t, `echo > zero; git add zero; git -C "$BARE" config uploadpack.allowFilter true`)
	sh(`{ printf 'commit refs/heads/main\ncommitter p <p@x> 1 +0000\ndata 0\nM 644 inline zero\ndata 269484032\n'; head -c 269484032 /dev/zero; } | git -C "$BARE" fast-import --quiet --force`)
	tree := gitserver.Tree{"README": []byte("hello\n")}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, err := s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.NoError(t, err)
	require.Equal(t, []string{"zero"}, found.Removed)

	sh(`git -C "$BARE" config uploadpack.allowFilter false`)
	_, err = s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.ErrorContains(t, err, tooLarge)
	_, changed, err := s.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.True(t, changed)
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(64), "MiB")

	_, changed, err = s.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.False(t, changed)
}

// TestAFolderThatIsThereAMillionTimes is small in a repository.
func TestAFolderThatIsThereAMillionTimes(t *testing.T) {
	s, _ := pushed(t, `echo x > 0; git add 0; t=$(git write-tree)
for i in 1 2 3 4 5 6; do
	t=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\t%s\n' "$t" "$n"; done | git mktree)
done
git() { if [ "$1" = write-tree ]; then echo "$t"; else command git "$@"; fi; }`)
	tree := gitserver.Tree{"README": []byte("hello\n")}
	_, err := s.Compare(t.Context(), "slipway/platform", "main", tree)
	require.ErrorContains(t, err, tooLarge)
	_, changed, err := s.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.True(t, changed)
}
