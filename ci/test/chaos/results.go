package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// verdict is how a round has ended.
type verdict string

// The verdicts.
const (
	equal  verdict = "equal"
	failed verdict = "failed"
)

// result is a line of the results file: what a round has shown.
type result struct {
	Round    int       `json:"round"` // from 1
	Kind     string    `json:"kind"`
	Seed     uint64    `json:"seed"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Moment   float64   `json:"moment"` // seconds after the beginning of the install
	During   string    `json:"during,omitempty"`
	Reused   int       `json:"reused"`   // steps
	Runs     int       `json:"runs"`     // that had the lock
	Attempts int       `json:"attempts"` // at steps
	Verdict  verdict   `json:"verdict"`
	Why      string    `json:"why,omitempty"` // it is not equal
}

func (r result) String() string {
	took := time.Duration(r.Seconds * float64(time.Second)).Round(time.Second)
	text := fmt.Sprintf("%3d %-15s at %5.1fs %s; %d steps reused, %d attempts of %d runs; %s: %s", r.Round, r.Kind, r.Moment, r.During, r.Reused, r.Attempts, r.Runs, took, r.Verdict)
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}

// append adds the result to a file, such that it is there if the machine goes down.
func (r result) append(file string) (err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("note the result: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err = f.Write(append(text, '\n')); err == nil {
		err = f.Sync()
	}
	return err
}

// results reads those of a seed, in the order of the rounds. Of a round that was played again the
// last one counts.
func results(file string, seed uint64) ([]result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	defer func() { _ = f.Close() }()
	byRound := map[int]result{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, n, err)
		}
		if r.Seed == seed {
			byRound[r.Round] = r
		}
	}
	var all []result
	for _, r := range byRound {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(a.Round, b.Round) })
	return all, lines.Err()
}

// judge fails where no round was played, or none of a kind that was asked for by its name, and for
// rounds before the one with a number that failed in an earlier call.
func judge(all []result, from int, asked []string) error {
	var wrong []error
	played := map[string]bool{}
	for _, r := range all {
		played[r.Kind] = true
		if r.Verdict == failed && r.Round < from {
			wrong = append(wrong, fmt.Errorf("round %d, of an earlier call: %s", r.Round, r.Why))
		}
	}
	for _, kind := range asked {
		if !played[kind] {
			wrong = append(wrong, fmt.Errorf("no round of kind %s was played: there are fewer rounds than kinds", kind))
		}
	}
	if len(played) == 0 {
		wrong = append(wrong, errors.New("no round was played"))
	}
	return errors.Join(wrong...)
}

// summarise writes how many rounds of each kind have ended how, those of earlier calls too.
func summarise(w io.Writer, all []result) error {
	count := map[string]map[verdict]int{}
	var order []string
	total := map[verdict]int{}
	for _, r := range all {
		if count[r.Kind] == nil {
			count[r.Kind] = map[verdict]int{}
			order = append(order, r.Kind)
		}
		count[r.Kind][r.Verdict]++
		total[r.Verdict]++
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tEQUAL\tFAILED")
	for _, kind := range order {
		c := count[kind]
		fmt.Fprintf(table, "%s\t%d\t%d\n", kind, c[equal], c[failed])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d equal\n", total[equal], len(all))
	return nil
}
