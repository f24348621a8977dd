package report

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// What a record may have. A record in the state may be anybody's, and a list of empty entries takes
// hundreds of times as much memory as its text; a real record has some thousand commas and some
// hundred kilobytes at most.
const (
	maxRecord = 8 << 20 // bytes
	maxCommas = 50_000
	maxPhases = 200 // each looks at all steps
)

// Decode reads a record. Newer versions are rejected, and records that are too large.
func Decode(b []byte) (*Run, error) {
	if len(b) > maxRecord {
		return nil, fmt.Errorf("decode run record: it has %d bytes; at most %d are read", len(b), maxRecord)
	}
	if n := bytes.Count(b, []byte(",")); n > maxCommas {
		return nil, fmt.Errorf("decode run record: it has %d commas; at most %d are read", n, maxCommas)
	}
	var r Run
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("decode run record: %w", err)
	}
	if r.Version < 1 || r.Version > Version {
		return nil, fmt.Errorf("decode run record: it has version %d, this program knows %d", r.Version, Version)
	}
	if len(r.Phases) > maxPhases {
		return nil, fmt.Errorf("decode run record: it has %d phases; at most %d are read", len(r.Phases), maxPhases)
	}
	return &r, nil
}
