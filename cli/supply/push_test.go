package supply

import (
	"bytes"
	"crypto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// lockFile writes a lock as bundle push does.
func lockFile(t *testing.T, pins *lock.Lock, location string) string {
	t.Helper()
	sum := strings.Repeat("a", 64)
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for _, i := range pins.Images {
		index.Images = append(index.Images, bundle.Image{Name: i.Name, Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Digest: "sha256:" + sum, StandsFor: i.StandsFor})
	}
	for _, tool := range pins.Tools {
		index.Files = append(index.Files, bundle.File{Path: "bin/" + tool.Name, Name: tool.Name, Kind: bundle.Tool, Version: tool.Version, Origin: tool.Modules[0].Origin(), SHA256: sum})
	}
	text, err := (&lock.File{Version: lock.Format, Location: location, Bundles: map[string]lock.Pushed{index.Platform: {Toolchain: "sha256:" + sum, Manifests: "sha256:" + sum, Index: index}}}).Marshal()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "slipway.lock.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

// TestALockFileKeepsOtherPlatforms of the same place; nothing is signed that nobody vouches for.
func TestALockFileKeepsOtherPlatforms(t *testing.T) {
	const to = "127.0.0.1:1/x"
	b := &bundle.Bundle{Index: bundle.Index{Platform: "linux/amd64"}}
	pins, err := lock.Load()
	require.NoError(t, err)
	private, _ := sigstoretest.Files(t)
	signer, _, err := secrets.PrivateKey(private)
	require.NoError(t, err)
	others := func(file string, signer crypto.Signer) (*lock.File, string, error) {
		t.Helper()
		var said bytes.Buffer
		o := bundlePushOptions{out: file}
		there, err := o.others(console.Streams{Err: progress.Open(&said, progress.Options{})}, pins, b, to, signer)
		return there, said.String(), err
	}
	there := lockFile(t, pins, to)
	read, _, err := lock.Read(there)
	require.NoError(t, err)
	require.Equal(t, []string{"linux/amd64"}, read.Platforms())

	kept, said, err := others(there, signer)
	require.NoError(t, err)
	require.Nil(t, kept, "the platform is the bundle's")
	require.Empty(t, said)

	b.Platform = "linux/arm64"
	kept, said, err = others(there, nil)
	require.NoError(t, err)
	require.Equal(t, read, kept)
	require.Contains(t, said, there+" keeps its digests for linux/amd64\n")
	_, _, err = others(there, signer)
	require.ErrorIs(t, err, &fault.Fault{Code: "LCK-007"})

	kept, said, err = others(lockFile(t, pins, "localhost:5000/team"), signer)
	require.NoError(t, err)
	require.Nil(t, kept)
	require.Contains(t, said, "will be replaced: it is of what is in localhost:5000/team\n")
	kept, said, err = others(filepath.Join(t.TempDir(), "none.json"), signer)
	require.NoError(t, err)
	require.Nil(t, kept)
	require.Empty(t, said)
}
