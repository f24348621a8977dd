package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

type vulnerability struct {
	Summary         string
	Module, Version string // where it is
	Fixed           string // the version that fixes it; empty: there is none
	Function        string // a vulnerable function that is in the program
}

type findings map[string]vulnerability

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
	summaries, found := map[string]string{}, findings{}
	for d := json.NewDecoder(r); ; {
		var m message
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("read what govulncheck prints: %w", err)
		case m.OSV != nil: // before what is found of it
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Function != "":
			id, at := m.Finding.OSV, m.Finding.Trace[0]
			// A package may be taken to be of a module that has it in none of its versions.
			if found[id].Fixed == "" {
				found[id] = vulnerability{Summary: summaries[id], Module: at.Module, Version: at.Version, Fixed: m.Finding.FixedVersion,
					Function: at.Package + "." + at.Function}
			}
		}
	}
}

// reasons say why vulnerabilities are accepted, by program and identifier.
type reasons map[string]map[string]string

// readReasons reads accepted.yaml, in which programs that have something in common are named
// together ("dagger, engine"). A reason begins with the day on which it was given.
func readReasons(text []byte) (reasons, error) {
	var file map[string]map[string]string
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	why := reasons{}
	for names, its := range file {
		for name := range strings.SplitSeq(names, ", ") {
			if why[name] == nil {
				why[name] = map[string]string{}
			}
			maps.Copy(why[name], its)
		}
	}
	return why, nil
}

// check fails for each vulnerability of a program without a reason, and each reason for the
// program without a vulnerability.
func (why reasons) check(program string, found findings) error {
	var wrong []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if why[program][id] != "" {
			continue
		}
		v, remedy := found[id], "no version is without it:"
		if v.Fixed != "" {
			remedy = "take " + v.Fixed + ", or"
		}
		wrong = append(wrong, fmt.Errorf("%s has %s (%s): %s of %s %s; %s say in accepted.yaml why it does no harm",
			program, id, v.Summary, v.Function, v.Module, v.Version, remedy))
	}
	for _, id := range slices.Sorted(maps.Keys(why[program])) {
		if _, there := found[id]; !there {
			wrong = append(wrong, fmt.Errorf("%s does not have %s any more: take it out of accepted.yaml", program, id))
		}
	}
	return errors.Join(wrong...)
}
