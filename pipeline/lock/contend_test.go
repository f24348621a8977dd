package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
)

func TestContend_memory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		contend(t, contest{
			Store: func(int) lock.Store { return s }, Counter: s, Pause: 10 * time.Second, Work: 7 * time.Second,
		})
	})
}

func TestContend_directory(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), "file://"+filepath.Join(dir, "state"), store.Options{})
	require.NoError(t, err)
	contend(t, contest{
		Store: func(int) lock.Store { return s }, Counter: s, Pause: 5 * time.Millisecond,
		Options: lock.Options{TTL: 5 * time.Minute}, // no machine is that slow
	})
}

// TestContend_server runs on the bucket of a server that ci/test/s3 starts.
func TestContend_server(t *testing.T) {
	url := os.Getenv("SLIPWAY_TEST_BUCKET")
	if url == "" {
		t.Skip("SLIPWAY_TEST_BUCKET names no bucket")
	}
	url, err := store.Below(url, "lock")
	require.NoError(t, err)
	s, err := store.Open(t.Context(), url, store.Options{Openers: buckets.All()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	contend(t, contest{
		Store: func(int) lock.Store { return s }, Counter: s, Pause: 50 * time.Millisecond,
		Options: lock.Options{TTL: 5 * time.Minute}, // no machine is that slow
	})
}

// TestContend_faults: no increment is lost, whatever the store does.
func TestContend_faults(t *testing.T) {
	for name, plan := range map[string]faults{
		"errors":       {Error: 0.1},
		"lost replies": {LostReply: 0.1},
		"torn":         {Torn: 0.1},
		"silent torn":  {SilentTorn: 0.1},
		"duplicates":   {Duplicate: 0.5},
		"slow":         {Slow: 0.5, Delay: 12 * time.Second},
		"all":          {Error: 0.04, LostReply: 0.04, Torn: 0.04, SilentTorn: 0.04, Duplicate: 0.1, Slow: 0.3, Delay: 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				synctest.Test(t, func(t *testing.T) {
					s := memory(t)
					plan.Seed = seed
					bad := faulty(s, plan)
					contend(t, contest{
						Store: func(int) lock.Store { return bad }, Counter: s, Contenders: 20, Pause: 10 * time.Second, Work: 12 * time.Second,
						Tolerated: func(err error) bool {
							return errors.Is(err, errInjected) || errors.Is(err, &fault.Fault{Code: lock.CodeLost}) || errors.Is(err, &fault.Fault{Code: lock.CodeRelease})
						},
					})
					require.NotEmpty(t, bad.Counts(), "faults that occurred")
				})
			}
		})
	}
}
