package slipway

import (
	"fmt"
	"os"
)

// dataDir is the variable that names where copies of states are kept.
const dataDir = "SLIPWAY_DATA_DIR"

// OwnData has the programs that this process runs keep copies of states in a folder of its
// own, and not in that of who runs it, until end is called. One that was named stays.
func OwnData() (end func(), err error) {
	if os.Getenv(dataDir) != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "slipway-data-")
	if err == nil {
		err = os.Setenv(dataDir, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make a folder for copies of states: %w", err)
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}
