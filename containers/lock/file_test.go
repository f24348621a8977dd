package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

// pushed is the lock file of a bundle that holds what the lock says.
func pushed(t *testing.T, change func(*bundle.Index)) *File {
	t.Helper()
	l, err := Load()
	require.NoError(t, err)
	x := made(l).Index
	x.Images = append(x.Images, bundle.Image{
		Name: "quay.io/team/web:1", Ref: "quay.io/team/web@sha256:" + strings.Repeat("b", 64), Digest: "sha256:" + strings.Repeat("b", 64),
		Archive: bundle.AddedDir + "/b.tar", StandsFor: []string{"quay.io/team/web:1"},
	})
	x.Files = append(x.Files, bundle.File{Path: bundle.AddedDir + "/b.tar", Name: "quay.io/team/web:1", Kind: bundle.Images, SHA256: strings.Repeat("c", 64)})
	change(&x)
	return &File{Version: Format, Location: "registry.example.com/team", Bundles: map[string]Pushed{x.Platform: {
		Toolchain: "sha256:" + strings.Repeat("1", 64), Manifests: "sha256:" + strings.Repeat("2", 64), Index: x,
	}}}
}

func TestALockFileIsReadAsItIsWritten(t *testing.T) {
	f := pushed(t, func(*bundle.Index) {})
	text, err := f.Marshal()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "slipway.lock.json")
	require.NoError(t, os.WriteFile(name, text, 0o644))
	read, data, err := Read(name)
	require.NoError(t, err)
	require.Equal(t, text, data)
	require.Equal(t, f, read)
	require.Equal(t, []string{"linux/amd64"}, read.Platforms())
	of := read.Bundles["linux/amd64"]
	for _, i := range of.Index.Images {
		switch i.Name {
		case Toolchain:
			require.Equal(t, of.Toolchain, of.Digest(i))
		case "quay.io/team/web:1":
			require.Equal(t, "quay.io-team-web", i.Repository())
			fallthrough
		default:
			require.Equal(t, i.Digest, of.Digest(i))
		}
	}
	_, _, err = Read(name + ".none")
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFile})
}

func TestALockFileReportsEveryProblem(t *testing.T) {
	f := pushed(t, func(x *bundle.Index) {
		x.Images[0].Name = "../x"
		x.Images[1].Name = Manifests
		x.Files[0].Path = "/etc/passwd"
	})
	f.Location = "https://registry.example.com"
	of := f.Bundles["linux/amd64"]
	of.Toolchain = "latest"
	f.Bundles = map[string]Pushed{"linux/arm64": of}
	_, err := f.Marshal()
	for _, says := range []string{
		`location: "https://registry.example.com" is no registry`, `bundles: that of "linux/arm64" is for "linux/amd64"`,
		"linux/arm64: the digests of toolchain and manifests are required", `image "../x": "../x" is no path in a registry`,
		`image "manifests": "manifests" is no path in a registry`, `"/etc/passwd" is not a path inside the bundle`,
	} {
		require.ErrorContains(t, err, says)
	}
	_, err = ParseFile([]byte(`{"version": 1}`))
	require.ErrorContains(t, err, "the list is empty")
	_, err = ParseFile([]byte(`{"version": 2}`))
	require.ErrorContains(t, err, "version is 2")
	_, err = ParseFile([]byte(`{"colour": 2}`))
	require.ErrorContains(t, err, "colour")
}

func TestALockFileHasThePinsOfTheProgram(t *testing.T) {
	own, err := Load()
	require.NoError(t, err)
	require.NoError(t, own.VerifyFile(pushed(t, func(*bundle.Index) {})))
	err = own.VerifyFile(pushed(t, func(x *bundle.Index) { x.Files[0].Version = "9.9.9" }))
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeLock})
	require.ErrorContains(t, err, "linux/amd64: tool "+own.Tools[0].Name+": the bundle has version 9.9.9, the lock says "+own.Tools[0].Version)
}

// FuzzRead: a lock file is read as it is written, or rejected.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"version":1,"location":"r/../x:1","bundles":{"linux/amd64":{"toolchain":"sha256:00","manifests":"","index":{"version":1}}}}`,
		`{"version":1,"bundles":{"":{"index":{"images":[{"name":"a"},{"name":"a","archive":"../x"}]}}}}`, `{"version":1e400}`, "[", "", "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "slipway.lock.json")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		faulttest.Bounded(t, func() {
			l, data, err := Read(file)
			if err != nil {
				require.ErrorIs(t, err, &fault.Fault{Code: CodeFile})
				faulttest.Coded(t, err, fault.Usage)
				return
			}
			require.Equal(t, text, data)
			written, err := l.Marshal()
			require.NoError(t, err)
			again, err := ParseFile(written)
			require.NoError(t, err, "%s", written)
			twice, err := again.Marshal()
			require.NoError(t, err)
			require.Equal(t, string(written), string(twice))
		})
	})
}
