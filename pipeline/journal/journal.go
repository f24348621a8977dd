// Package journal keeps the last result of each step as a file of its own, so
// that nothing is lost when the programs around it are killed. A record is
// there completely or not at all, and one that was damaged is noticed.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// Version is the version of the records that this program writes and reads.
const Version = 1

// maxRecord is the largest record that is read, in bytes.
const maxRecord = 64 << 20

// Entry is the result of a step.
type Entry struct {
	Digest   string          `json:"digest"`           // of the step's inputs: a result counts for these only
	Status   string          `json:"status"`           // "succeeded", "failed", …
	Output   json.RawMessage `json:"output,omitempty"` // of a step that succeeded
	Started  time.Time       `json:"started"`
	Finished time.Time       `json:"finished"`
	Run      string          `json:"run"`     // id of the run
	Attempt  int             `json:"attempt"` // how often the step was tried with this digest, counted from 1
	Fault    *fault.Fault    `json:"fault,omitempty"`
}

// Reason says why a record cannot be used.
type Reason string

// The reasons.
const (
	Torn    Reason = "torn"    // incomplete or altered: its checksum does not match
	Foreign Reason = "foreign" // of another step, or of a program that writes other records
)

// RecordError is a file that holds no usable record.
type RecordError struct {
	File   string
	Reason Reason
	Err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("journal record %s is %s: %v", e.File, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// Journal is a directory of records. Several processes may use one at the same
// time as long as each step has one writer.
type Journal struct {
	dir string
}

// Open returns the journal in dir, which is made by the first Write.
func Open(dir string) *Journal { return &Journal{dir} }

// envelope is what a file holds. The checksum is over the bytes of Record.
type envelope struct {
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"`
	Record  json.RawMessage `json:"record"`
}

type record struct {
	Stage string `json:"stage"`
	Step  string `json:"step"`
	Entry
}

var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// File is where the record of a step is. It panics on a name that is not made of
// lower-case letters, digits and hyphens.
func (j *Journal) File(stage, step string) string {
	if !nameRE.MatchString(stage) || !nameRE.MatchString(step) {
		panic(fmt.Sprintf("journal: step %q of stage %q has no name for a file", step, stage))
	}
	return filepath.Join(j.dir, stage+"."+step+".json")
}

// Write replaces the record of a step. When it returns nil the record survives a
// crash of the machine; when it does not return, the earlier record is intact.
func (j *Journal) Write(stage, step string, e Entry) error {
	file := j.File(stage, step)
	body, err := json.Marshal(record{stage, step, e})
	if err != nil {
		return fmt.Errorf("encode journal record %s: %w", file, err)
	}
	sum := sha256.Sum256(body)
	data, err := json.Marshal(envelope{Version, hex.EncodeToString(sum[:]), body})
	if err != nil {
		return fmt.Errorf("encode journal record %s: %w", file, err)
	}
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return fmt.Errorf("make the journal's directory: %w", err)
	}
	if err := replace(file, append(data, '\n')); err != nil {
		return fmt.Errorf("write journal record %s: %w", file, err)
	}
	return nil
}

// Read returns the record of a step. Without one the error is fs.ErrNotExist; a
// file that holds no usable record is a *RecordError, and the step has to run
// again.
func (j *Journal) Read(stage, step string) (Entry, error) {
	file := j.File(stage, step)
	r, err := read(file)
	if err != nil {
		return Entry{}, err
	}
	if r.Stage != stage || r.Step != step {
		return Entry{}, &RecordError{file, Foreign, fmt.Errorf("it is of step %q", r.Stage+"/"+r.Step)}
	}
	return r.Entry, nil
}

// Record is an entry with the step that it is of.
type Record struct {
	Stage string
	Step  string
	Entry
}

// All returns the usable records by the names of their files, and joins the
// errors of those that are not.
func (j *Journal) All() ([]Record, error) {
	entries, err := os.ReadDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list the journal: %w", err)
	}
	var out []Record
	var errs []error
	for _, f := range entries {
		name, isRecord := strings.CutSuffix(f.Name(), ".json")
		stage, step, hasStep := strings.Cut(name, ".")
		if !isRecord || !hasStep || !nameRE.MatchString(stage) || !nameRE.MatchString(step) {
			continue // what Write leaves behind when it is killed
		}
		e, err := j.Read(stage, step)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, Record{stage, step, e})
	}
	return out, errors.Join(errs...)
}

// Remove forgets the record of a step; there need not be one.
func (j *Journal) Remove(stage, step string) error {
	file := j.File(stage, step)
	if err := os.Remove(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove journal record: %w", err)
	}
	return syncDir(j.dir)
}

func read(file string) (record, error) {
	info, err := os.Stat(file)
	if err != nil {
		return record{}, fmt.Errorf("read journal record: %w", err)
	}
	if info.Size() > maxRecord {
		return record{}, &RecordError{file, Foreign, fmt.Errorf("%d bytes are more than a record has", info.Size())}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return record{}, fmt.Errorf("read journal record: %w", err)
	}
	var env envelope
	if err := json.Unmarshal(data, &env); err != nil {
		return record{}, &RecordError{file, Torn, err}
	}
	if env.Version != Version {
		return record{}, &RecordError{file, Foreign, fmt.Errorf("it has version %d, want %d", env.Version, Version)}
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		return record{}, &RecordError{file, Torn, errors.New("its end is missing")}
	}
	sum := sha256.Sum256(env.Record)
	if got := hex.EncodeToString(sum[:]); got != env.SHA256 {
		return record{}, &RecordError{file, Torn, fmt.Errorf("its sha256 is %s, want %q", got, env.SHA256)}
	}
	var r record
	if err := json.Unmarshal(env.Record, &r); err != nil {
		return record{}, &RecordError{file, Foreign, err}
	}
	return r, nil
}

// replace writes a file next to the other one and puts it in its place.
func replace(file string, data []byte) error {
	dir, base := filepath.Split(file)
	const mark = ".tmp-"
	stale, err := filepath.Glob(filepath.Join(dir, "."+base+mark+"*"))
	if err != nil {
		return err
	}
	for _, s := range stale { // of a writer that was killed
		if err := os.Remove(s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.CreateTemp(dir, "."+base+mark+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
