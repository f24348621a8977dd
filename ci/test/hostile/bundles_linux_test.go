package hostile

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// bundle puts a bundle into the working directory, with nothing in it that runs.
func (s sandbox) bundle(t *testing.T) {
	t.Helper()
	const text = "no images\n"
	sum := sha256.Sum256([]byte(text))
	index := bundle.Index{
		Version: bundle.Format, Platform: "linux/amd64",
		Files:  []bundle.File{{Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, Version: "1", Origin: "images", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text))}},
		Images: []bundle.Image{{Name: "busybox", Ref: bundle.Host + "/busybox:1", Digest: "sha256:" + strings.Repeat("a", 64)}},
	}
	data, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(s.path("work/bundle/images"), 0o755))
	require.NoError(t, os.WriteFile(s.path("work/bundle/"+bundle.WorkloadArchive), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(s.path("work/bundle/"+bundle.IndexFile), data, 0o644))
}
