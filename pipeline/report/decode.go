package report

import (
	"encoding/json"
	"fmt"
)

// What a record may have. One in the state may be anybody's, and a list of empty objects takes
// hundreds of times as much memory as its text; a real one has tens of steps and some hundred
// kilobytes at most.
const (
	maxRecord  = 8 << 20 // bytes
	maxSteps   = 2_000
	maxPhases  = 200    // each looks at all steps
	maxEntries = 10_000 // of any other list
)

// Decode reads a record. Newer versions are rejected, and records that are too large.
func Decode(b []byte) (*Run, error) {
	var r Run
	err := checkSize(b)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("decode run record: %w", err)
	}
	if r.Version < 1 || r.Version > Version {
		return nil, fmt.Errorf("decode run record: it has version %d, this program knows %d", r.Version, Version)
	}
	return &r, nil
}

// counted is how many entries a list has; of a field that is there twice, the longer one has.
type counted int

// UnmarshalJSON only counts, which takes no memory.
func (c *counted) UnmarshalJSON(b []byte) error {
	var list []entry
	err := json.Unmarshal(b, &list)
	*c = max(*c, counted(len(list)))
	return err
}

type entry struct{}

// UnmarshalJSON accepts everything.
func (*entry) UnmarshalJSON([]byte) error { return nil }

// checkSize returns an error if a record is too large to be decoded.
func checkSize(b []byte) error {
	if len(b) > maxRecord {
		return fmt.Errorf("it has %d bytes; at most %d are read", len(b), maxRecord)
	}
	var of struct {
		Steps     counted `json:"steps"`
		Apps      counted `json:"apps"`
		Links     counted `json:"links"`
		Diagnosis counted `json:"diagnosis"`
		Warnings  counted `json:"warnings"`
		Commands  counted `json:"commands"`
		Phases    counted `json:"phases"`
	}
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	if of.Steps > maxSteps {
		return fmt.Errorf("it has %d steps; at most %d are read", of.Steps, maxSteps)
	}
	if of.Phases > maxPhases {
		return fmt.Errorf("it has %d phases; at most %d are read", of.Phases, maxPhases)
	}
	if most := max(of.Apps, of.Links, of.Diagnosis, of.Warnings, of.Commands); most > maxEntries {
		return fmt.Errorf("one of its lists has %d entries; at most %d are read", most, maxEntries)
	}
	return nil
}
