package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

func TestMain(m *testing.M) { os.Exit(withOwnData(m)) }

// withOwnData runs the tests, which leave nothing in the folders of who runs them.
func withOwnData(m *testing.M) int {
	end, err := slipway.OwnData()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer end()
	return m.Run()
}
