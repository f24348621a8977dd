package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/history"
)

// events are those of a history in which nothing is wrong: the second holder takes the lock
// over while the first one still works.
func events() []history.Event {
	return []history.Event{
		{Op: history.Take, At: 20, Generation: 1, Run: "a-1"},
		{Op: history.End, At: 27, Generation: 1, Run: "a-1", Step: "s", N: 1},
		{Op: history.Take, At: 70, Generation: 2, Run: "b-1"},
		{Op: history.Begin, At: 73, Generation: 2, Run: "b-1", Step: "s", N: 1},
		{Op: history.Fail, At: 75, Generation: 1, Run: "a-1", Step: "s", N: 2, Error: "LOK-002"},
		{Op: history.Put, At: 60, Generation: 1, Step: "latest/000000000001"},
		{Op: history.End, At: 88, Generation: 2, Run: "b-1", Step: "s", N: 2},
		{Op: history.Release, At: 91, Generation: 2},
		{Op: history.Force, At: 94, Generation: 3},
		{Op: history.Found, At: 100, Run: "a-1", Step: "s", N: 1},
		{Op: history.Found, At: 100, Run: "b-1", Step: "s", N: 2},
		{Op: history.Last, At: 100, Run: "b-1", Step: "s", N: 2},
	}
}

func TestCheck(t *testing.T) {
	require.Empty(t, history.Check(events()))
	require.Empty(t, history.Check(nil))
}

// TestCheck_finds: each kind of anomaly is found in a history that has it.
func TestCheck_finds(t *testing.T) {
	add := func(more ...history.Event) func([]history.Event) []history.Event {
		return func(e []history.Event) []history.Event { return append(e, more...) }
	}
	without := func(which history.Event) func([]history.Event) []history.Event {
		return func(all []history.Event) (left []history.Event) {
			for _, e := range all {
				if e.Op != which.Op || e.Run != which.Run {
					left = append(left, e)
				}
			}
			return left
		}
	}
	for name, c := range map[string]struct {
		change func([]history.Event) []history.Event
		kind   history.Kind
		says   string
	}{
		"two holders of a generation": {add(history.Event{Op: history.Take, At: 73, Generation: 2, Run: "c-1"}),
			history.Twice, "generation 2 has two holders"},
		"a generation after a higher one": {add(history.Event{Op: history.Take, At: 96, Generation: 5, Run: "c-1"}, history.Event{Op: history.Take, At: 98, Generation: 4, Run: "d-1"}),
			history.Twice, "generation 5 was taken before 4"},
		"an attempt of one without the lock": {add(history.Event{Op: history.Begin, At: 71, Generation: 1, Run: "a-1", Step: "s", N: 2}),
			history.Overlap, "generation 1 is let work 1ns after 2 was taken"},
		"an attempt that went on without the lock": {add(history.Event{Op: history.Fail, At: 72, Generation: 1, Run: "a-1", Step: "s", N: 2, Error: "STP-001"}),
			history.Overlap, `s of generation 1 went on for 2ns after 2 was taken, and failed with "STP-001"`},
		"a value of one without the lock": {add(history.Event{Op: history.Put, At: 71, Generation: 1, Step: "latest/000000000001"}),
			history.Unheld, "put of generation 1 began 1ns after 2 was there"},
		"an end of one without the lock": {add(history.Event{Op: history.End, At: 71, Generation: 1, Run: "a-1", Step: "s", N: 1}),
			history.Unheld, "end of generation 1 began"},
		"a release of one without the lock": {add(history.Event{Op: history.Release, At: 71, Generation: 1}),
			history.Unheld, "release of generation 1 began"},
		"a lost attempt": {without(history.Event{Op: history.Found, Run: "a-1"}),
			history.Missing, "an attempt at s by a-1"},
		"a lost last attempt": {without(history.Event{Op: history.Last, Run: "b-1"}),
			history.Missing, "the last attempt at s is not by"},
	} {
		t.Run(name, func(t *testing.T) {
			anomalies := history.Check(c.change(events()))
			require.NotEmpty(t, anomalies)
			for _, a := range anomalies {
				require.Equal(t, c.kind, a.Kind)
			}
			require.Contains(t, anomalies[0].String(), c.says)
		})
	}
}
