package runpackage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/bounded"
)

// index is what a package says of its run, and of its files.
type index struct {
	Info
	Files []entry `json:"files"` // sorted by name
}

// entry is a file of a package.
type entry struct {
	Name       string `json:"name"`
	SHA256     string `json:"sha256"` // in hex
	Size       int64  `json:"size"`   // bytes
	Executable bool   `json:"executable,omitempty"`
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// state is the index of a package.
func state(info Info, files Files) index {
	info.Format = Format
	x := index{Info: info, Files: []entry{}}
	for _, name := range files.names() {
		f := files[name]
		x.Files = append(x.Files, entry{Name: name, SHA256: sum(f.Data), Size: int64(len(f.Data)), Executable: f.Executable})
	}
	return x
}

func (x index) encode() ([]byte, error) {
	text, err := json.MarshalIndent(x, "", "  ")
	return append(text, '\n'), err
}

// newer says that a package is of a format that this program does not know.
type newer int

func (n newer) Error() string {
	return fmt.Sprintf("it is of format %d, this program reads %d", int(n), Format)
}

func open(text []byte) (index, error) {
	var x index
	if err := json.Unmarshal(text, &x); err != nil {
		return x, bounded.Error(err)
	}
	if x.Format != Format {
		return x, newer(x.Format)
	}
	if again, err := x.encode(); err != nil || !bytes.Equal(again, text) {
		return x, errors.New("it is not as slipway save writes it")
	}
	if err := x.checkTexts(); err != nil {
		return x, err
	}
	seen := map[string]bool{}
	for _, f := range x.Files {
		if err := checkName(f.Name); err != nil || reserved(f.Name) || seen[f.Name] {
			return x, fmt.Errorf("%.200q: %w", f.Name, errors.Join(err, errors.New("no name of a file of a package")))
		}
		seen[f.Name] = true
	}
	return x, nil
}
