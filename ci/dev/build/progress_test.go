package build_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := build.NewReporter(&out, 3)
		task := func(takes time.Duration, says string, hit bool, err error) func(func(string)) (bool, error) {
			return func(say func(string)) (bool, error) {
				if says != "" {
					say(says)
				}
				time.Sleep(takes)
				return hit, err
			}
		}
		require.NoError(t, r.Do("kubernetes v1.35.4", "building", task(80*time.Second, "", false, nil)))
		require.NoError(t, r.Do("runc", "building", task(0, "", true, nil)))
		broken := errors.New("broken")
		require.Equal(t, broken, r.Do("git", "building", task(16*time.Second, "waiting for process 12, which builds it", false, broken)))
		r.Finish("all")
		require.Equal(t, `[1/3] kubernetes v1.35.4: building … 15s
[1/3] kubernetes v1.35.4: building … 30s
[1/3] kubernetes v1.35.4: building … 45s
[1/3] kubernetes v1.35.4: building … 1m0s
[1/3] kubernetes v1.35.4: building … 1m15s
[1/3] kubernetes v1.35.4: done in 1m20s
[2/3] runc: unchanged
[3/3] git: waiting for process 12, which builds it …
[3/3] git: waiting for process 12, which builds it … 15s
[3/3] git: failed in 16s
all (took 1m36s)
`, out.String())
	})
}
