package pipeline_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain detects leaked goroutines.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
