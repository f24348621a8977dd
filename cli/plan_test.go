package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsNoPlanOrApproval(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"plan", "mend"}, `there is no plan of "mend"; give install, upgrade or destroy`},
		{[]string{"plan", "rollback"}, `there is no plan of "rollback"; give install, upgrade or destroy`},
		{[]string{"plan", "--to", "1.1.0"}, "--to is for slipway plan upgrade"},
		{[]string{"plan", "--style", "in-place"}, "--style is for slipway plan upgrade"},
		{[]string{"plan", "upgrade", "--style", "fast"}, `--style is "fast"; give graceful or in-place`},
		{[]string{"plan", "destroy", "--take-ownership"}, "--take-ownership is for slipway plan install"},
		{[]string{"plan", "--output", "yaml"}, "give text or json"},
		{[]string{"install", "--approve", "sha256:12"}, "give the digest at the end of its plan"},
		{[]string{"destroy", "--approve", "abc"}, "give the digest at the end of its plan"},
		{[]string{"upgrade", "--approve", "abc"}, "give the digest at the end of its plan"},
		{[]string{"install", "--approve", digest, "--until", "orchestrator"}, "--approve is for a whole run"},
	} {
		code, _, errs := slipway(c.args...)
		require.Equal(t, 2, code, c.args)
		require.Contains(t, errs, c.says)
	}
}
