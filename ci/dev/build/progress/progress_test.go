package progress_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/progress"
)

func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := progress.New(&out, 3)
		a := r.Start("kubernetes v1.35.4", "building")
		time.Sleep(80 * time.Second)
		a.Done("built")
		r.Start("runc", "building").Done("unchanged")
		b := r.Start("git", "building")
		b.Say("waiting for process 12, which builds it")
		time.Sleep(16 * time.Second)
		b.Fail()
		b.Done("built") // too late: it has failed
		r.Finish("all")
		require.Equal(t, `[1/3] kubernetes v1.35.4: building … 15s
[1/3] kubernetes v1.35.4: building … 30s
[1/3] kubernetes v1.35.4: building … 45s
[1/3] kubernetes v1.35.4: building … 1m0s
[1/3] kubernetes v1.35.4: building … 1m15s
[1/3] kubernetes v1.35.4: built in 1m20s
[2/3] runc: unchanged
[3/3] git: waiting for process 12, which builds it …
[3/3] git: waiting for process 12, which builds it … 15s
[3/3] git: failed in 16s
all (took 1m36s)
`, out.String())
	})
}
