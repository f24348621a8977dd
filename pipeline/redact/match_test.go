package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeparatedNumbersAreMasked: whatever stands between the numbers of bytes.
func TestSeparatedNumbersAreMasked(t *testing.T) {
	const secret = "canary-7f3a91-XyZw_q"
	for _, as := range []string{"%02x", "%02X", "%02x ", "%02X-", "%02x:", "0x%02x, ", "0x%02x,\n  ", `\x%02x`, "%%%02x", "&#x%02x;", "%02x\n"} {
		var text string
		for _, c := range []byte(secret) {
			text += fmt.Sprintf(as, c)
		}
		for _, n := range []int{1, 10_000} {
			if strings.Contains(as, "\n") && n == 1 {
				continue // a line waits from two bytes on
			}
			got := written(t, secret, "it is ("+text+") so\n", n)
			require.Regexp(t, `^it is \(\W*(0?x)?\*\*\*(\W*\) so)?\n$`, got, as)
		}
	}
}
