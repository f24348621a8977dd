package bundle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

const system = "linux/amd64"

// made is a bundle with clients that say this.
func made(t *testing.T, says string) *Bundle {
	t.Helper()
	dir, x := t.TempDir(), Index{Version: Format, Platform: system}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for _, name := range clients() {
		text := []byte(name + says)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), text, 0o755))
		x.Files = append(x.Files, File{Path: "bin/" + name, Name: name, Kind: Tool, Version: "1", SHA256: SumOf(text), Size: int64(len(text))})
	}
	text, err := x.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, IndexFile), text, 0o644))
	b, err := Read(dir)
	require.NoError(t, err)
	return b
}

func says(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

func TestClientsAreReplacedByNewerOnes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bin")
	first := made(t, " 1")
	all, err := first.PutClients(t.Context(), dir, system)
	require.NoError(t, err)
	require.Len(t, all, 4)
	require.False(t, all[0].There)
	for _, name := range clients() {
		require.Equal(t, name+" 1", says(t, dir, name))
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	}
	all, err = first.PutClients(t.Context(), dir, system)
	require.NoError(t, err)
	for _, c := range all {
		require.True(t, c.There, c.Name)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "helm")))
	_, err = made(t, " 2").PutClients(t.Context(), dir, system)
	require.NoError(t, err)
	for _, name := range clients() {
		require.Equal(t, name+" 2", says(t, dir, name))
	}
	_, err = first.PutClients(t.Context(), dir, system)
	require.NoError(t, err, "those before were put there, too")
	require.Equal(t, "kubectl 1", says(t, dir, "kubectl"))
}

func TestProgramsOfOthersStay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kubectl", "helm"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("somebody else's"), 0o755))
	}
	_, err := made(t, " 1").PutClients(t.Context(), dir, system)
	require.ErrorIs(t, err, &fault.Fault{Code: atomicfile.CodeUnwritten})
	require.ErrorContains(t, err, filepath.Join(dir, "kubectl")+" is another program")
	require.ErrorContains(t, err, filepath.Join(dir, "helm")+" is another program")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing is written")
}

func TestWhatABundleDoesNotHave(t *testing.T) {
	dir, b := t.TempDir(), made(t, " 1")
	_, err := b.PutClients(t.Context(), dir, "darwin/arm64")
	require.ErrorIs(t, err, &fault.Fault{Code: CodeClients})
	require.ErrorContains(t, err, "find clients for darwin/arm64: the bundle is for linux/amd64")
	require.NoError(t, os.WriteFile(b.Path("bin/kubectl"), []byte("damaged"), 0o755))
	_, err = b.PutClients(t.Context(), dir, system)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeContent})
	require.NoFileExists(t, filepath.Join(dir, "kubectl"))
	b.Files = b.Files[:1]
	_, err = b.PutClients(t.Context(), dir, system)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeClients})
	_, err = made(t, " 1").PutClients(t.Context(), filepath.Join(dir, "slipway"), system)
	require.ErrorIs(t, err, &fault.Fault{Code: atomicfile.CodeUnwritten}, "it is no folder")
}
