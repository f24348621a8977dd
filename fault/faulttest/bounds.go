// Package faulttest holds what the tests of parsers have in common: limits of time and memory, and
// broken documents with what is wrong with each.
package faulttest

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// The most that parsing a small input may take, on a machine that is busy with other things.
const (
	limit  = 20 * time.Second
	memory = 1 << 30 // bytes, allocated in total
)

// Bounded calls parse, which must not take much longer, or allocate more, than a small input needs.
func Bounded(t *testing.T, parse func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	parse()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	require.Less(t, took, limit, "time")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(memory), "bytes allocated")
}

// Coded requires that err is a fault of a class that says what to do.
func Coded(t *testing.T, err error, class fault.Class) {
	t.Helper()
	f, ok := fault.Whole(err)
	require.True(t, ok, "no code: %v", err)
	require.Equal(t, class, f.Class, "%v", err)
	require.NotEmpty(t, f.Code)
	require.NotEmpty(t, f.Fix)
}
