package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/s3/gateway/gatewaytest"
	"github.com/slipway-sh/slipway/ci/test/s3/proxy"
	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// disturbed is how many requests something was done to.
func disturbed(b *bucket) (n int) {
	for mode, count := range b.proxy.Counts() {
		if mode != proxy.Pass {
			n += count
		}
	}
	return n
}

// TestBucket: what is done to the bucket, its clients notice, and nothing stays of it.
func TestBucket(t *testing.T) {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	b, err := openBucket(t.Context(), root, t.TempDir(), "127.0.0.1", 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	credentials, err := os.ReadFile(b.credentials)
	require.NoError(t, err)
	for line := range strings.Lines(string(credentials)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	d := &deployment{Deployment: slipway.Deployment{Name: "n", Bundle: "/b", Root: "/r"}, bucket: b, config: "/c.yaml"}
	args := d.destroy(t.Context()).Args
	require.Equal(t, []string{"--config", "/c.yaml", "--state", b.flags()[1], "--state-credentials", b.credentials, "--yes", "--ignore-not-found"}, args[len(args)-8:])
	url, err := store.Below(b.flags()[1], d.Name) // as Slipway does
	require.NoError(t, err)
	s, err := gatewaytest.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	put := func(size int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return s.Put(ctx, "latest/000000000001", make([]byte, size))
	}
	require.NoError(t, put(1))
	dir, done, err := d.state(t.Context(), time.Now())
	require.NoError(t, err)
	defer done()
	require.FileExists(t, filepath.Join(dir, "latest/000000000001"))

	t.Run("partition", func(t *testing.T) {
		found := map[string]bool{}
		for seed := uint64(0); len(found) < 3; seed++ {
			inst := &running{gone: make(chan struct{})}
			r := round{deployment: d, random: rand.New(rand.NewPCG(seed, 0)), pause: time.Minute}
			last := make(chan error, 1)
			go func() {
				defer close(inst.gone)
				for before := disturbed(b); ; {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					err := s.Put(ctx, "latest/000000000001", nil)
					cancel()
					if disturbed(b) > before {
						last <- err
						return
					}
				}
			}()
			did, err := r.partition(t.Context(), inst)
			require.NoError(t, err)
			mode, _, _ := strings.Cut(did, " ")
			found[mode] = true
			require.Equal(t, mode == "duplicate", <-last == nil, did)
		}
		require.Equal(t, map[string]bool{"cut": true, "delay": true, "duplicate": true}, found)
		require.NoError(t, put(1))
	})
}
