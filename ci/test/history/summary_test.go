package history_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/ci/test/s3/proxy"
)

// summary is how often each operation was done, and what was done to requests and processes.
type summary map[string]int

// What is done to processes.
const (
	stopped = "stopped"
	killed  = "killed"
)

func (s summary) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, s[name]))
	}
	return strings.Join(parts, ", ")
}

func (s summary) add(other summary) {
	for name, n := range other {
		s[name] += n
	}
}

// missing is what there is none of, without which a history says little.
func (s summary) missing() (names []string) {
	wanted := []string{stopped, killed}
	for _, op := range []history.Op{history.Take, history.Force, history.Guard, history.Write, history.Read, history.End, history.Release, history.Lose} {
		wanted = append(wanted, string(op))
	}
	for _, mode := range proxy.Modes() {
		wanted = append(wanted, string(mode))
	}
	for _, name := range wanted {
		if s[name] == 0 {
			names = append(names, name)
		}
	}
	return names
}
