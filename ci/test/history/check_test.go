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
		{Op: history.Take, Who: "a", Call: 10, Return: 20, Generation: 1, Token: "t1", Run: "a-1"},
		{Op: history.End, Who: "a", Call: 27, Return: 28, Generation: 1, Run: "a-1", Step: "s", N: 1},
		{Op: history.End, Who: "a", Call: 35, Error: "no answer", Generation: 1, Run: "a-1", Step: "s", N: 3},
		{Op: history.Take, Who: "b", Call: 50, Return: 70, Generation: 2, Token: "t2", Run: "b-1"},
		{Op: history.Begin, Who: "b", Call: 73, Return: 73, Generation: 2, Run: "b-1", Step: "s", N: 1},
		{Op: history.Fail, Who: "a", Call: 75, Return: 75, Generation: 1, Run: "a-1", Step: "s", N: 2, Error: "LOK-002"},
		{Op: history.Put, Call: 60, Return: 60, Generation: 1, Step: "latest/000000000001"},
		{Op: history.End, Who: "b", Call: 88, Return: 89, Generation: 2, Run: "b-1", Step: "s", N: 2},
		{Op: history.Release, Who: "b", Call: 91, Return: 92, Generation: 2},
		{Op: history.Force, Who: "d", Call: 93, Return: 94, Generation: 3},
		{Op: history.Found, Call: 100, Return: 100, Run: "a-1", Step: "s", N: 1},
		{Op: history.Found, Call: 100, Return: 100, Run: "b-1", Step: "s", N: 2},
		{Op: history.Last, Call: 100, Return: 100, Run: "b-1", Step: "s", N: 2},
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
		"two holders of a generation": {add(history.Event{Op: history.Take, Who: "c", Call: 71, Return: 73, Generation: 2, Token: "t3", Run: "c-1"}),
			history.Twice, "generation 2 has two holders"},
		"a generation after a higher one": {add(history.Event{Op: history.Take, Who: "c", Call: 95, Return: 96, Generation: 5, Run: "c-1"}, history.Event{Op: history.Take, Who: "d", Call: 97, Return: 98, Generation: 4, Run: "d-1"}),
			history.Twice, "generation 5 was taken before 4"},
		"an attempt of one without the lock": {add(history.Event{Op: history.Begin, Who: "a", Call: 71, Return: 71, Generation: 1, Run: "a-1", Step: "s", N: 2}),
			history.Overlap, "generation 1 is let work 1ns after 2 was taken"},
		"an attempt that went on without the lock": {add(history.Event{Op: history.Fail, Who: "a", Call: 72, Return: 72, Generation: 1, Run: "a-1", Step: "s", N: 2, Error: "STP-001"}),
			history.Overlap, `s of generation 1 went on for 2ns after 2 was taken, and failed with "STP-001"`},
		"a value of one without the lock": {add(history.Event{Op: history.Put, Call: 71, Return: 71, Generation: 1, Step: "latest/000000000001"}),
			history.Unheld, "put of generation 1 began 1ns after 2 was there"},
		"an end of one without the lock": {add(history.Event{Op: history.End, Who: "a", Call: 71, Return: 72, Generation: 1, Run: "a-1", Step: "s", N: 1}),
			history.Unheld, "end of generation 1 began"},
		"a release of one without the lock": {add(history.Event{Op: history.Release, Who: "a", Call: 71, Return: 72, Generation: 1}),
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
