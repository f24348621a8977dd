package imageref

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var digest = "sha256:" + strings.Repeat("ab", 32)

func TestNormal(t *testing.T) {
	for s, want := range map[string]string{
		"redis":                                        "docker.io/library/redis:latest",
		"redis:8.2.3-alpine":                           "docker.io/library/redis:8.2.3-alpine",
		"bitnami/redis":                                "docker.io/bitnami/redis:latest",
		"docker.io/redis:1":                            "docker.io/library/redis:1",
		"index.docker.io/library/redis:1":              "docker.io/library/redis:1",
		"quay.io/argoproj/argocd:v3.5.3":               "quay.io/argoproj/argocd:v3.5.3",
		"localhost/a":                                  "localhost/a:latest",
		"localhost:5000/a/b:1":                         "localhost:5000/a/b:1",
		"registry.local:5000/a":                        "registry.local:5000/a:latest",
		"[::1]:5000/a:1":                               "[::1]:5000/a:1",
		"Host/a:1":                                     "Host/a:1",
		"redis@" + digest:                              "docker.io/library/redis@" + digest,
		"registry.k8s.io/a/b:v1@" + digest:             "registry.k8s.io/a/b@" + digest,
		"slipway.local/gitea@" + digest:                "slipway.local/gitea@" + digest,
		"quay.io/a@sha512:" + strings.Repeat("ab", 64): "quay.io/a@sha512:" + strings.Repeat("ab", 64),
		"library/nginx":                                "docker.io/library/nginx:latest",
		"10.0.0.1:5000/a/b:1":                          "10.0.0.1:5000/a/b:1",
		"gcr.io/a/b__c/d-e.f:V1_2":                     "gcr.io/a/b__c/d-e.f:V1_2",
		"a.b.c:1/d/e/f/g:" + "x" + ".y-z":              "a.b.c:1/d/e/f/g:x.y-z",
		"docker.io/library/redis:8.2.3-alpine":         "docker.io/library/redis:8.2.3-alpine",
		"public.ecr.aws/docker/library/redis:8":        "public.ecr.aws/docker/library/redis:8",
	} {
		got, err := Normal(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
		again, err := Normal(got)
		require.NoError(t, err, s)
		require.Equal(t, got, again, "it is the one way to write it")
	}
}

func TestWhatIsNoReference(t *testing.T) {
	for _, s := range []string{
		"", "Redis", "redis:", "redis:a b", "redis@sha256:12", "redis@md5:1", "https://quay.io/a", "oci://quay.io/a:1", "redis:1 ", "\tredis",
		"quay.io/Team/App:1", "quay.io/a@sha512:" + strings.Repeat("ab", 32), "quay.io/a@SHA256:" + strings.Repeat("ab", 32), "quay.io/", "quay.io//a",
		"-host.io/a", "{{ .Values.image }}", strings.Repeat("0", 64), "quay.io/a:" + digest + "x",
	} {
		_, err := Parse(s)
		require.ErrorContains(t, err, "is no reference of an image", s)
	}
}

func TestParts(t *testing.T) {
	r, err := Parse("registry.k8s.io/a/b:v1@" + digest)
	require.NoError(t, err)
	require.Equal(t, Reference{Host: "registry.k8s.io", Path: "a/b", Tag: "v1", Digest: digest}, r)
	require.Equal(t, "registry.k8s.io/a/b:v1", r.Tagged())
	require.Equal(t, "registry.k8s.io/a/b", r.Repository())
	r.Tag = ""
	require.Empty(t, r.Tagged())
}

func TestIsShort(t *testing.T) {
	for s, want := range map[string]bool{"redis": true, "local-path.x": true, "": false, "redis:1": false, "a/b": false, "redis@x": false} {
		require.Equal(t, want, IsShort(s), s)
	}
}
