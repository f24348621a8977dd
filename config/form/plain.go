package form

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Plain is the Asker that only writes and reads lines, one question after another.
type Plain struct {
	out     io.Writer
	started bool          // the instructions have been shown
	want    chan struct{} // requests a line
	lines   chan string
	err     error // why there are no more lines; set when lines is closed
}

// NewPlain reads from in, but only while a question waits for its answer, so that an
// editor can use it in between. Nothing that it shows does something to the terminal.
func NewPlain(in io.Reader, out io.Writer) *Plain {
	p := &Plain{out: redact.NewPrinter(out), want: make(chan struct{}, 1), lines: make(chan string)}
	go func() {
		defer close(p.lines)
		s := bufio.NewScanner(in)
		for range p.want {
			if !s.Scan() {
				p.err = s.Err()
				return
			}
			p.lines <- s.Text()
		}
	}()
	return p
}

// Ask asks for one answer after another.
func (p *Plain) Ask(ctx context.Context, v *answers.Interview, pages []answers.Page, before map[string]string, _ bool) (map[string]string, error) {
	out := map[string]string{}
	maps.Copy(out, before)
	if !p.started {
		fmt.Fprint(p.out, "An empty line accepts the value in [ ]; - clears it; Ctrl-C exits without writing anything.\n")
		p.started = true
	}
	for _, page := range pages {
		if !page.Asked(out) {
			continue
		}
		fmt.Fprintf(p.out, "\n%s. %s\n", oneLine(page.Title), below(page.Help))
		for _, q := range page.Questions {
			if err := p.question(ctx, v, pages, out, q); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// question asks until the answer is valid, and stores it in all.
func (p *Plain) question(ctx context.Context, v *answers.Interview, pages []answers.Page, all map[string]string, q answers.Question) error {
	before := all[q.Path]
	p.show(oneLine(q.Title())+": "+below(describe(q)), q.Choices)
	if q.Kind == answers.Several {
		fmt.Fprint(p.out, "  Names or numbers, separated by commas.\n")
	}
	if before == "" && placeholder(q) != "" && len(q.Choices) == 0 {
		fmt.Fprintf(p.out, "  (%s)\n", placeholder(q))
	}
	for {
		fmt.Fprintf(p.out, "%s [%s]: ", oneLine(q.Title()), oneLine(before))
		answer, err := p.read(ctx)
		switch {
		case err != nil:
			return err
		case answer == "":
			answer = before
		case answer == "-":
			answer = ""
		}
		if len(q.Choices) > 0 {
			if answer, err = chosen(q, answer); err != nil {
				fmt.Fprintf(p.out, "  not accepted: %s\n", err)
				continue
			}
		}
		all[q.Path] = answer
		wrong := v.Try(pages, all, q)
		if wrong == nil {
			return nil
		}
		fmt.Fprintf(p.out, "  not accepted: %s\n", oneLine(wrong.Reason()))
	}
}

// Choose asks for one of the options; an empty answer selects the first.
func (p *Plain) Choose(ctx context.Context, title string, options []answers.Option) (string, error) {
	q := answers.Question{Kind: answers.Choice, Choices: options}
	p.show(oneLine(title), options)
	for {
		fmt.Fprintf(p.out, "Number [1]: ")
		answer, err := p.read(ctx)
		if err != nil {
			return "", err
		}
		if answer == "" {
			answer = "1"
		}
		if answer, err = chosen(q, answer); err == nil {
			return answer, nil
		}
		fmt.Fprintf(p.out, "  not accepted: %s\n", err)
	}
}

// show prints a question with numbered options.
func (p *Plain) show(title string, options []answers.Option) {
	fmt.Fprintf(p.out, "\n%s\n", title)
	for i, o := range options {
		fmt.Fprintf(p.out, "  %d: %s\n", i+1, oneLine(o.Label))
	}
}

// below has the further lines of a text below the first: they are no questions.
func below(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

// chosen converts names or numbers of options to answers.
func chosen(q answers.Question, text string) (string, error) {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" && q.Kind == answers.Several {
			continue
		}
		if item == "" && q.Choices[0].Answer != "" {
			return "", errors.New("want one of them")
		}
		if i := slices.IndexFunc(q.Choices, func(o answers.Option) bool { return o.Answer == item }); i >= 0 {
			out = append(out, item)
			continue
		}
		n, err := strconv.Atoi(item)
		if err != nil || n < 1 || n > len(q.Choices) {
			return "", fmt.Errorf("got %q, want a number from 1 to %d, or the text next to it", item, len(q.Choices))
		}
		out = append(out, q.Choices[n-1].Answer)
	}
	if q.Kind == answers.Choice && len(out) != 1 {
		return "", errors.New("want one of them")
	}
	return strings.Join(out, ","), nil
}

// read returns the next line, without surrounding space.
func (p *Plain) read(ctx context.Context) (string, error) {
	select {
	case p.want <- struct{}{}:
	default: // the last question was abandoned before it was answered
	}
	select {
	case line, ok := <-p.lines:
		if ok {
			return strings.TrimSpace(line), nil
		}
		fmt.Fprintln(p.out)
		if p.err != nil {
			return "", fmt.Errorf("read the answer: %w", p.err)
		}
		return "", fmt.Errorf("the answers end here: %w", ErrAborted)
	case <-ctx.Done():
		fmt.Fprintln(p.out)
		return "", context.Cause(ctx)
	}
}
