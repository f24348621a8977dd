package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// write makes a bundle that holds the given files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	index := Index{
		Version: Format, Platform: "linux/amd64",
		Images: []Image{
			{Name: "redis", Ref: "slipway.local/redis:7.0.15", Digest: digest},
			{Name: "gitea", Ref: "slipway.local/gitea:1.26.0", Digest: digest},
		},
	}
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755))
		sum := sha256.Sum256([]byte(content))
		index.Files = append(index.Files, File{
			Path: name, Name: filepath.Base(name), Kind: Tool, Version: "1", Origin: "source",
			SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)),
		})
	}
	data, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, IndexFile), data, 0o644))
	return dir
}

func TestAnIntactBundleVerifies(t *testing.T) {
	dir := write(t, map[string]string{"bin/helm": "a", "bin/kubectl": "b", "images/node.tar": "c"})
	require.NoError(t, verify(t.Context(), dir))

	b, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"gitea": "slipway.local/gitea@" + digest,
		"redis": "slipway.local/redis@" + digest,
	}, b.Images())
	helm, ok := b.Tool("helm")
	require.True(t, ok)
	require.FileExists(t, b.Path(helm.Path))

	require.NoError(t, os.WriteFile(filepath.Join(dir, SignatureFile), []byte("{}"), 0o644))
	require.NoError(t, verify(t.Context(), dir), "the index cannot name its signature")

	link := filepath.Join(t.TempDir(), "current")
	require.NoError(t, os.Symlink(dir, link))
	require.NoError(t, verify(t.Context(), link))
}

func TestVerifyNamesEveryWrongFile(t *testing.T) {
	dir := write(t, map[string]string{"bin/a": "same", "bin/b": "gone", "bin/c": "content", "bin/d": "grows", "bin/e": "link", "bin/f": "a zip has no modes"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "bin/f"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "bin/b")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin/c"), []byte("tnetnoc"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin/d"), []byte("has grown"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "bin/e")))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "bin/e")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stray"), nil, 0o644))

	err := verify(t.Context(), dir)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeContent})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	for _, want := range []string{
		"bin/b is missing", "bin/c has sha256", "bin/d has 9 bytes, the index says 5",
		"bin/e is not a regular file", "bin/f is not executable: chmod +x bin/f", "stray is not in the index",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "bin/a ")
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "in place of a copy, copy that one again")
	require.Contains(t, f.Fix, "move its folder away, then build it anew: make bundle")
}

func TestReadFaults(t *testing.T) {
	const file = `{"path":"bin/a","name":"a","kind":"tool","version":"1","origin":"source","sha256":"` +
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" + `","size":1}`
	for name, c := range map[string]struct {
		index string
		code  fault.Code
		says  []string
	}{
		"not JSON":      {"nonsense", CodeIndex, []string{"invalid character"}},
		"a newer one":   {`{"version":2,"platform":"linux/amd64","files":[` + file + `],"images":[]}`, CodeIndex, []string{"version is 2"}},
		"unknown field": {`{"version":1,"colour":"red"}`, CodeIndex, []string{"colour"}},
		"lines of its own": {
			strings.NewReplacer(`"bin/a"`, `"bin/b\nevery file is the one"`, `"1"`, `"1\n"`).Replace(`{"version":1,"platform":"linux/amd64","files":[` + file + `],"images":[{"name":"x\nerror BUN-003: forged","ref":"y\u202e"}]}`),
			CodeIndex, []string{`files[0]: "bin/b\nevery file is the one" cannot be printed`, `images[0]: "x\nerror BUN-003: forged" cannot be printed`},
		},
		"all problems": {
			`{"version":1,"platform":"plan9/mips","files":[` + file + `,` + file + `,` + strings.Replace(file, "bin/a", "../a", 1) +
				`],"images":[{"name":"x","ref":"y","digest":"md5:1"}]}`,
			CodeIndex,
			[]string{"plan9/mips", "bin/a is listed twice", `"../a" is not a path inside`, "x has no digest"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, IndexFile), []byte(c.index), 0o644))
			_, err := Read(dir)
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
		})
	}
	_, err := Parse([]byte(`{"version":1,"files":[` + strings.Repeat("{},", 10_000) + `{}]}`))
	require.ErrorContains(t, err, "and more than these 100 problems")
	require.Less(t, len(err.Error()), 20_000)
	_, err = Parse([]byte(`{"version":1,"` + strings.Repeat("x", 1<<20) + `":1}`))
	require.Less(t, len(err.Error()), 20_000)
	_, err = Parse(make([]byte, maxIndex+1))
	require.ErrorContains(t, err, "larger than what is read of such a file, 4 MiB")
	_, err = Read(t.TempDir())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeAbsent})
	linked := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(write(t, map[string]string{"bin/a": "a"}), IndexFile), filepath.Join(linked, IndexFile)))
	_, err = Read(linked)
	require.ErrorContains(t, err, "is not a regular file", "a link may lead to any file")
}

func TestVerifyNamesAFileInOneLine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no file has such a name there")
	}
	dir := write(t, map[string]string{"bin/a": "a"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x\nevery file is the one"), nil, 0o644))
	require.ErrorContains(t, verify(t.Context(), dir), `x\nevery file is the one is not in the index`)
}

func TestVerifyStopsWhenCancelled(t *testing.T) {
	dir := write(t, map[string]string{"bin/a": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, verify(ctx, dir), context.Canceled)
}

func TestCheckPlatform(t *testing.T) {
	b, err := Read(write(t, map[string]string{"bin/a": "a"}))
	require.NoError(t, err)
	require.NoError(t, b.Check("linux/amd64"))
	err = b.Check("linux/arm64")
	require.ErrorIs(t, err, &fault.Fault{Code: CodePlatform})
	require.ErrorContains(t, err, "it is for linux/amd64, the engine runs on linux/arm64")
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Contains(t, f.Fix, "make bundle ARCH=arm64")
}

func TestTheSameContentHasTheSameIndex(t *testing.T) {
	a, err := os.ReadFile(filepath.Join(write(t, map[string]string{"x": "1", "y": "2", "z": "3"}), IndexFile))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(write(t, map[string]string{"z": "3", "y": "2", "x": "1"}), IndexFile))
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

func TestWhatImagesStandFor(t *testing.T) {
	dir := write(t, map[string]string{"images/added/one.tar": "a", "images/workloads.tar": "b"})
	b, err := Read(dir)
	require.NoError(t, err)
	require.Empty(t, b.Index.Images[0].StandsFor, "an index without the field is read")
	index, other := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	b.Index.Images[1].StandsFor = []string{"public.ecr.aws/docker/library/redis:8.10.1-alpine"}
	b.Index.Images = append(b.Index.Images, Image{
		Name: "docker.io/library/nginx:1", Ref: "docker.io/library/nginx:1", Digest: other, Archive: "images/added/one.tar", Index: index,
		StandsFor: []string{"registry.k8s.io/nginx@" + index, "docker.io/library/nginx:1"},
	})
	text, err := b.Marshal()
	require.NoError(t, err)
	b, err = Parse(text)
	require.NoError(t, err)
	names := map[string][]string{}
	for _, i := range b.Index.Images {
		names[i.Pinned()] = Names(i.StandsFor, i.Digest, i.Index)
	}
	require.Equal(t, map[string][]string{
		"slipway.local/gitea@" + digest: nil,
		"slipway.local/redis@" + digest: {"public.ecr.aws/docker/library/redis:8.10.1-alpine", "public.ecr.aws/docker/library/redis@" + digest},
		"docker.io/library/nginx@" + other: {
			"docker.io/library/nginx:1", "docker.io/library/nginx@" + index, "docker.io/library/nginx@" + other,
			"registry.k8s.io/nginx@" + index, "registry.k8s.io/nginx@" + other,
		},
	}, names)
	require.Len(t, b.Images(), 2, "what was added has no short name")

	b.Index.Images[1].StandsFor = []string{"nginx", "docker.io/library/nginx:1", "Not a reference"}
	b.Index.Images[1].Index = "sha256:1"
	b.Index.Images[2].Archive = "images/workloads.tar"
	_, err = b.Marshal()
	for _, says := range []string{
		"stands for nginx, which is written docker.io/library/nginx:latest", "docker.io/library/nginx:1, as another image does",
		`"Not a reference" is no reference`, "has no digest", "is no file of the bundle in images/added",
	} {
		require.ErrorContains(t, err, says)
	}
}

func TestVerifyLeavesAloneWhatAnInterruptedAddLeft(t *testing.T) {
	dir := write(t, map[string]string{"bin/a": "a", "images/added/one.tar": "content"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, AddedDir, ".tmp-1"), []byte("half of it"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".tmp-1"), []byte("half of an index"), 0o600))
	require.NoError(t, verify(t.Context(), dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, AddedDir, "one.tar"), []byte("tnetnoc"), 0o600))
	require.ErrorContains(t, verify(t.Context(), dir), "images/added/one.tar has sha256", "and what was added is compared")
}

// verify verifies the bundle in dir.
func verify(ctx context.Context, dir string) error {
	b, err := Read(dir)
	if err != nil {
		return err
	}
	return b.Verify(ctx)
}
