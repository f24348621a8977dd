package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResults(t *testing.T) {
	of := func(n int, kind string, err error) result {
		return result{seen{"a/b: running", 0, 9, 2}, n, kind, 2500 * time.Millisecond, 61 * time.Second, err}
	}
	all := []result{of(1, "kill-step", nil), of(2, "contend", nil), of(3, "kill-step", nil), of(4, "contend", errors.New("two lines\nof it"))}
	require.Equal(t, "  1 kill-step       at   2.5s a/b: running; 0 steps reused, 9 attempts of 2 runs; 1m1s: equal", all[0].String())
	require.Contains(t, all[3].String(), "1m1s: failed: two lines\nof it")
	var text strings.Builder
	require.NoError(t, summarise(&text, all))
	require.Equal(t, `KIND       EQUAL  FAILED
kill-step  2      0
contend    1      1
3 of 4 equal
`, text.String())
}
