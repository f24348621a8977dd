package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// result is what a round has shown.
type result struct {
	seen
	round  int // from 1
	kind   string
	moment time.Duration // after the beginning of the install
	took   time.Duration
	err    error // why it has failed
}

func (r result) String() string {
	verdict := "equal"
	if r.err != nil {
		verdict = "failed: " + r.err.Error()
	}
	return fmt.Sprintf("%3d %-15s at %5.1fs %s; %d steps reused, %d attempts of %d runs; %s: %s",
		r.round, r.kind, r.moment.Seconds(), r.during, r.reused, r.attempts, r.runs, r.took.Round(time.Second), verdict)
}

// summarise writes how many rounds of each kind have ended how.
func summarise(w io.Writer, all []result) error {
	type count struct{ equal, failed int }
	counts, order, equal := map[string]*count{}, []string{}, 0
	for _, r := range all {
		if counts[r.kind] == nil {
			counts[r.kind] = &count{}
			order = append(order, r.kind)
		}
		if r.err != nil {
			counts[r.kind].failed++
			continue
		}
		counts[r.kind].equal++
		equal++
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tEQUAL\tFAILED")
	for _, kind := range order {
		fmt.Fprintf(table, "%s\t%d\t%d\n", kind, counts[kind].equal, counts[kind].failed)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d equal\n", equal, len(all))
	return nil
}
