package runpackage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/pipeline/dsse"
)

// PredicateType is the type of what a package's statement says of its files.
const PredicateType = "https://slipway.sh/run-package/v1"

// predicate is what a package says of its run, and of its files besides their digests.
type predicate struct {
	Info
	Files []size `json:"files"` // in the order of the subjects
}

type size struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"` // bytes
	Executable bool   `json:"executable,omitempty"`
}

const algorithm = "sha256"

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// state is the statement of a package, whose subjects are sorted by name.
func state(info Info, files Files) dsse.Statement[predicate] {
	info.Format = Format
	s := dsse.Statement[predicate]{Type: dsse.StatementType, PredicateType: PredicateType, Subject: []dsse.Subject{}, Predicate: predicate{Info: info, Files: []size{}}}
	for _, name := range files.names() {
		f := files[name]
		s.Subject = append(s.Subject, dsse.Subject{Name: name, Digest: map[string]string{algorithm: sum(f.Data)}})
		s.Predicate.Files = append(s.Predicate.Files, size{Name: name, Size: int64(len(f.Data)), Executable: f.Executable})
	}
	return s
}

// newer says that a package is of a format that this program does not know.
type newer int

func (n newer) Error() string {
	return fmt.Sprintf("it is of format %d, this program reads %d", int(n), Format)
}

// open reads an index.
func open(text []byte) (*dsse.Envelope, dsse.Statement[predicate], error) {
	e, s, err := dsse.Open[predicate](text)
	if err != nil {
		return nil, s, err
	}
	if again, err := e.Encode(); err != nil || !bytes.Equal(again, text) {
		return nil, s, errors.New("it is not as slipway save writes it")
	}
	switch {
	case s.Type != dsse.StatementType || s.PredicateType != PredicateType:
		return nil, s, fmt.Errorf("it states %.100q, %.100q", s.Type, s.PredicateType)
	case s.Predicate.Format != Format:
		return nil, s, newer(s.Predicate.Format)
	case len(s.Subject) != len(s.Predicate.Files):
		return nil, s, errors.New("its two lists of files differ")
	}
	if err := s.Predicate.Info.checkTexts(); err != nil {
		return nil, s, err
	}
	seen := map[string]bool{}
	for i, subject := range s.Subject {
		if subject.Name != s.Predicate.Files[i].Name || seen[subject.Name] {
			return nil, s, errors.New("its two lists of files differ")
		}
		if err := checkName(subject.Name); err != nil || subject.Name == IndexFile {
			return nil, s, fmt.Errorf("%.200q: %w", subject.Name, errors.Join(err, errors.New("no name of a file of a package")))
		}
		seen[subject.Name] = true
	}
	return e, s, nil
}
