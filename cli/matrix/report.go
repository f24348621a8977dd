package matrix

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slipway-sh/slipway/pipeline/report"
)

// Table writes a line for each result, and below them what failed, with what runs it again.
func Table(w io.Writer, all []Result) error {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FROM\tTO\tSCALE\tSTYLE\tFAULTS\tRESULT\tTIME\tUPGRADE\tROWS KEPT\tREQUESTS FAILED\tDEPLOYMENT")
	for _, r := range all {
		upgrade := "-"
		if at := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == phaseUpgrade }); at >= 0 {
			upgrade = report.Took(r.Phases[at].Took)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Cell.From, r.Cell.To, r.Cell.Scale, r.Cell.Style, r.Cell.Faults, r.Outcome, report.Took(r.Took()), upgrade, r.Rows(), r.FailedRequests(), r.Deployment)
	}
	_ = table.Flush() // into memory
	for _, r := range all {
		if r.Outcome == Failed {
			fmt.Fprintf(&b, "\n%s: %s\n", r.Cell, r.Why())
			for _, line := range r.waysOn() {
				fmt.Fprintf(&b, "  %s\n", line)
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Why says in a line what failed.
func (r Result) Why() string {
	if r.Outcome != Failed {
		return string(r.Outcome)
	}
	phase := "the cell"
	if n := len(r.Phases); n > 0 {
		phase = r.Phases[n-1].Name
	}
	return strings.TrimSpace(fmt.Sprintf("%s failed: %s %s", phase, r.Code, r.Reason))
}

// waysOn are the lines that help with a failed cell.
func (r Result) waysOn() (out []string) {
	if r.Package != "" {
		out = append(out, "package: "+r.Package)
	}
	if r.Reproduce != "" {
		out = append(out, "reproduce: "+r.Reproduce)
	}
	return out
}

// JSON are all results.
func JSON(all []Result) ([]byte, error) {
	text, err := json.MarshalIndent(map[string][]Result{"cells": append([]Result{}, all...)}, "", "  ")
	return append(text, '\n'), err
}

// JUnit is a suite with a case for each result.
func JUnit(all []Result) ([]byte, error) {
	const name = "upgrade-matrix"
	suite := report.Suite{Name: name}
	for _, r := range all {
		c := report.Case{Name: r.Cell.String(), Class: name, Time: report.Seconds(r.Took()), Out: report.Counted(r.Counts)}
		switch r.Outcome {
		case Failed:
			c.Failure = &report.CaseProblem{Message: r.Why(), Type: r.Code, Text: r.Reason + "\n" + strings.Join(r.waysOn(), "\n")}
		case Cancelled:
			c.Skipped = &report.CaseProblem{Message: "it did not come to its end"}
		}
		suite.Add(c)
	}
	var b bytes.Buffer
	err := report.WriteJUnit(&b, name, time.Duration(suite.Time), suite)
	return b.Bytes(), err
}

//go:embed page.html
var pageText string

// Page is a heat map: a row per first release, a column per second one, with links to the reports.
func (r Results) Page(all []Result) ([]byte, error) {
	type row struct {
		Name  string
		Cells []*Result // as the columns; nil: there is no such cell
	}
	var view struct {
		Columns []string
		Rows    []row
		Failed  []Result
		Counts  string
	}
	counts := map[Outcome]int{}
	for i := range all {
		c := &all[i]
		counts[c.Outcome]++
		if c.Outcome == Failed {
			view.Failed = append(view.Failed, *c)
		}
		column := c.Cell.To + " " + c.Cell.Style
		if !slices.Contains(view.Columns, column) {
			view.Columns = append(view.Columns, column)
		}
	}
	for i := range all {
		c := &all[i]
		name := fmt.Sprintf("%s, scale %d, %s", c.Cell.From, c.Cell.Scale, c.Cell.Faults)
		at := slices.IndexFunc(view.Rows, func(x row) bool { return x.Name == name })
		if at < 0 {
			at = len(view.Rows)
			view.Rows = append(view.Rows, row{Name: name, Cells: make([]*Result, len(view.Columns))})
		}
		view.Rows[at].Cells[slices.Index(view.Columns, c.Cell.To+" "+c.Cell.Style)] = c
	}
	view.Counts = fmt.Sprintf("%d cells: %d upgraded, %d failed, %d not run", len(all), counts[Upgraded], counts[Failed], counts[Cancelled])
	page, err := template.New("page").Funcs(template.FuncMap{"took": report.Took, "report": r.report}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, view)
	return b.Bytes(), err
}

// report is the page of a cell's report; empty if there is none.
func (r Results) report(c Result) string {
	if c.Deployment == "" { // it was not begun
		return ""
	}
	for _, dir := range []string{testsDir, reportDir} {
		page := path.Join(c.Deployment, dir, report.PageFile)
		if _, err := os.Stat(filepath.Join(string(r), filepath.FromSlash(page))); err == nil {
			return page
		}
	}
	return ""
}
