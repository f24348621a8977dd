package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// library is the module of Go's standard library, as the database has it.
const library = "stdlib"

// vulnerability is what is known of one in a program.
type vulnerability struct {
	summary         string
	module, version string // where it is
	fixed           string // the version of the module without it; empty: there is none
	function        string // one that is vulnerable and in the program
}

// findings are the vulnerabilities of a program, by identifier. Some are in both: in a package
// of the standard library, and in the module from which that was copied.
type findings struct{ modules, library map[string]vulnerability }

// message is one of those that govulncheck prints, of the kinds that are needed; see
// https://pkg.go.dev/golang.org/x/vuln/internal/govulncheck.
type message struct {
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV          string `json:"osv"`
		FixedVersion string `json:"fixed_version"`
		Trace        []struct {
			Module   string `json:"module"`
			Version  string `json:"version"`
			Package  string `json:"package"`
			Function string `json:"function"`
		} `json:"trace"`
	} `json:"finding"`
}

// read reads what govulncheck prints, and returns the vulnerabilities in functions of the
// program, not those of modules and packages of which it has other functions only.
func read(r io.Reader) (findings, error) {
	summaries, found := map[string]string{}, findings{map[string]vulnerability{}, map[string]vulnerability{}}
	for d := json.NewDecoder(r); ; {
		var m message
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return findings{}, fmt.Errorf("read what govulncheck prints: %w", err)
		case m.OSV != nil: // before what is found of it
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Function != "":
			id, at, of := m.Finding.OSV, m.Finding.Trace[0], found.modules
			if at.Module == library {
				of = found.library
			}
			// A package may be taken to be of a module that has it in none of its versions.
			if of[id].fixed == "" {
				of[id] = vulnerability{summary: summaries[id], module: at.Module, version: at.Version, fixed: m.Finding.FixedVersion,
					function: at.Package + "." + at.Function}
			}
		}
	}
}

// reasons say why vulnerabilities are accepted, by program and identifier; those of Go's
// standard library are under its name.
type reasons map[string]map[string]string

// judge fails for each vulnerability of a program without a reason, and each reason for the
// program without a vulnerability. Those for the standard library may be more than there are:
// they depend on the Go that compiled the program.
func (why reasons) judge(program string, found findings) error {
	wrong := append(why.missing(program, program, found.modules), why.missing(program, library, found.library)...)
	for _, id := range slices.Sorted(maps.Keys(why[program])) {
		if _, there := found.modules[id]; !there {
			wrong = append(wrong, fmt.Errorf("%s does not have %s any more: take it out of accepted.yaml", program, id))
		}
	}
	return errors.Join(wrong...)
}

// missing returns an error for each vulnerability of a program for which there is no reason
// under a name.
func (why reasons) missing(program, under string, found map[string]vulnerability) []error {
	var wrong []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if why[under][id] != "" {
			continue
		}
		v, remedy := found[id], "no version is without it:"
		if v.fixed != "" {
			remedy = "take " + v.fixed + ", or"
		}
		wrong = append(wrong, fmt.Errorf("%s has %s (%s): %s of %s %s; %s say in accepted.yaml under %s why it does no harm",
			program, id, v.summary, v.function, v.module, v.version, remedy, under))
	}
	return wrong
}
