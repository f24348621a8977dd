package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// steps makes records out of lines "name from to needs…"; a step whose from is 0
// and whose to is 0 was never started.
func steps(lines ...string) []report.Step {
	var out []report.Step
	for _, line := range lines {
		var name string
		var from, to float64
		_, err := fmt.Sscan(line, &name, &from, &to)
		if err != nil {
			panic(err)
		}
		s := report.Step{Stage: "s", Step: name, Status: pipeline.Succeeded}
		for _, need := range strings.Fields(line)[3:] {
			s.Needs = append(s.Needs, "s/"+need)
		}
		if to > 0 {
			s.Started, s.Finished = at(from), at(to)
		}
		out = append(out, s)
	}
	return out
}

func namesOf(all []report.Step, path []int) string {
	var names []string
	for _, i := range path {
		names = append(names, all[i].Step)
	}
	return strings.Join(names, " ")
}

func TestCriticalPath(t *testing.T) {
	for want, lines := range map[string][]string{
		"":          {"a 0 0"},
		"a":         {"a 1 2"},
		"a c":       {"a 0 1", "b 0 5", "c 1 9 a"}, // b ended long before the run did
		"b c":       {"a 0 4", "b 0 5", "c 5 9 a b"},
		"a b d":     {"a 0 1", "b 1 8 a", "c 1 3 a", "d 8 9 b c", "e 0 0 d"},
		"late":      {"a 0 1", "late 3 9"},                       // it waited for nothing: for a free place, say
		"a z":       {"a 0 1", "z 1 2 a gone"},                   // an edge to a step that is not in the record
		"y x":       {"x 1 3 y", "y 1 2 x"},                      // not a graph, and no endless loop
		"one three": {"one 0 1", "two 1 2 one", "three 1 2 one"}, // the later of two that end together
	} {
		all := steps(lines...)
		require.Equal(t, want, namesOf(all, report.CriticalPath(all)), lines)
	}
	all := steps("a 0 5", "b 0 2", "cleanup 5 6")
	all[2].After = []string{"s/a", "s/b"}
	require.Equal(t, "a cleanup", namesOf(all, report.CriticalPath(all)))
	require.Empty(t, report.CriticalPath(nil))
}

// TestTheTimesOfAForgedRecord are more than 292 years apart, which no duration is long enough for.
func TestTheTimesOfAForgedRecord(t *testing.T) {
	r := succeeded()
	r.Started, r.Finished = time.Time{}.Add(time.Second), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for i := range r.Steps {
		r.Steps[i].Started, r.Steps[i].Finished = r.Started, r.Finished
	}
	dir := directory(t, r)
	require.NoError(t, report.Render(dir, r.ID, true))
	page, err := os.Stat(filepath.Join(dir, report.PageFile))
	require.NoError(t, err)
	require.Less(t, page.Size(), int64(1<<20))
}
