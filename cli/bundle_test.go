package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// smallBundle is a bundle for linux/amd64 with one image of its own.
func smallBundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("images"))
	index := bundle.Index{
		Version: bundle.Format, Platform: "linux/amd64",
		Files: []bundle.File{{Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, Version: "1", Origin: "images", SHA256: hex.EncodeToString(sum[:]), Size: 6}},
		Images: []bundle.Image{{
			Name: "redis", Ref: "slipway.local/redis:7.0", Digest: "sha256:" + strings.Repeat("a", 64),
			StandsFor: []string{"docker.io/library/redis:8", "public.ecr.aws/docker/library/redis:8"},
		}},
	}
	text, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "images"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.WorkloadArchive), []byte("images"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	return dir
}

// webLayout is an OCI layout with one image for linux/amd64.
func webLayout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	image, err := random.Image(100, 1)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	image, err = mutate.ConfigFile(image, config)
	require.NoError(t, err)
	path, err := layout.Write(dir, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendImage(image))
	return dir
}

func TestBundleAdd(t *testing.T) {
	dir, web := smallBundle(t), webLayout(t)
	for what, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no directory": {nil, 2, "give the directory of a bundle: slipway bundle add DIR REF=FILE"},
		"only a file":  {[]string{dir, filepath.Join(web, "index.json")}, 2, "is a file, and an image is to be added under a reference"},
		"no bundle":    {[]string{t.TempDir(), "web=" + web}, 3, "BUN-001"},
		"no reference": {[]string{dir, "Web"}, 2, "IMG-003"},
		"no source":    {[]string{dir, "web=./nowhere"}, 2, "IMG-003"},
		"two of them":  {[]string{dir, "redis:8=" + web, "web:1=" + t.TempDir()}, 2, "IMG-005"},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway(append([]string{"bundle", "add"}, c.args...)...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.says)
		})
	}
	code, out, errs := slipway("bundle", "add", dir, "quay.io/team/web:1="+web)
	require.Zero(t, code, errs)
	require.Contains(t, errs, " 1/1 quay.io/team/web:1 added")
	require.Contains(t, out, "slipway bundle list "+dir)
	code, _, errs = slipway("bundle", "add", dir, "quay.io/team/web:1="+web)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "quay.io/team/web:1 there already")
	code, _, errs = slipway("bundle", "verify", dir)
	require.Zero(t, code, errs)

	code, out, errs = slipway("bundle", "list", dir)
	require.Zero(t, code, errs)
	require.Contains(t, out, "for linux/amd64")
	require.Regexp(t, `(?m)^image +redis +7\.0 +sha256:a{12}… +docker\.io/library/redis:8\n +public\.ecr\.aws/docker/library/redis:8$`, out)
	require.Regexp(t, `(?m)^added +- +- +sha256:[0-9a-f]{12}… +quay\.io/team/web:1$`, out)
	code, out, errs = slipway("bundle", "list", dir, "--output", "json")
	require.Zero(t, code, errs)
	var x bundle.Index
	require.NoError(t, json.Unmarshal([]byte(out), &x))
	require.Len(t, x.Images, 2)
}
