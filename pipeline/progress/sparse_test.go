package progress_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// In plain lines, of messages that replace each other fast there are a few, and the last one
// in any case. A terminal shows each while it holds.
func TestSparsely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &lines{}
		r := run{progress.Open(out, progress.Options{}), map[pipeline.Key]time.Time{}}
		r.Sparsely(tls)
		r.Begin(graph())
		r.start(tls, node)
		for n := range 12 {
			r.Message(fmt.Sprintf("preorchestrator/tls: %d hold", n))
			r.Message(fmt.Sprintf("infrastructure/node: %d", n%2))
			after(time.Second)
		}
		r.end(tls, pipeline.Succeeded, nil)
		r.Message("preorchestrator/tls: that came late")
		r.End()
		text := out.String()
		require.Equal(t, 12, strings.Count(text, "infrastructure/node: 0")+strings.Count(text, "infrastructure/node: 1"), "that of the others")
		require.Contains(t, text, "     preorchestrator/tls: 11 hold\npreorchestrator/tls: succeeded after 12s\n     preorchestrator/tls: that came late\n")
		for n := range 12 {
			require.Equal(t, n == 0 || n == 5 || n == 10 || n == 11, strings.Contains(text, fmt.Sprintf("tls: %d hold\n", n)), n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r, term := open(t, 80, 24)
		defer r.End()
		r.Sparsely(tls)
		r.Begin(graph())
		r.start(tls)
		for _, says := range []string{"1 hold", "2 hold"} {
			r.Message("preorchestrator/tls: " + says)
			after(time.Second)
			require.Contains(t, term.text(), says)
		}
	})
}
