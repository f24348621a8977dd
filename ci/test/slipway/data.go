package slipway

import (
	"fmt"
	"os"
)

// The variables that name where copies of states are kept, and who works on deployments.
const (
	dataDir = "SLIPWAY_DATA_DIR"
	owner   = "SLIPWAY_OWNER"
)

// OwnData has the programs that this process runs keep copies of states in a folder of its
// own, and not in that of who runs it, until end is called; and work on deployments as the
// tests of whatever machine and user, for the deployments are on an engine that outlives
// these. What was named stays.
func OwnData() (end func(), err error) {
	if os.Getenv(owner) == "" {
		err = os.Setenv(owner, "the tests of Slipway")
	}
	if err != nil || os.Getenv(dataDir) != "" {
		return func() {}, err
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
