package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gonvenience/ytbx"
	"github.com/homeport/dyff/pkg/dyff"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Format is text or json.
type Format string

// AddFlag declares --output.
func (f *Format) AddFlag(set *pflag.FlagSet) {
	*f = "text"
	set.VarP(f, "output", "o", "format of what is printed: text or json")
}

func (f *Format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *Format) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("give text or json")
	}
	*f = Format(text)
	return nil
}

// Type implements pflag.Value.
func (f *Format) Type() string { return "string" }

// Print prints v as JSON, or what text prints, without control sequences.
func (f *Format) Print(w io.Writer, v any, text func(io.Writer) error) error {
	if *f == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	return text(redact.NewPrinter(w))
}

// NewTable aligns columns; the caller flushes it.
func NewTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Diff shows what differs between two versions of a YAML file.
func Diff(w io.Writer, file string, before, after []byte) error {
	var inputs [2]ytbx.InputFile
	for i, text := range [][]byte{before, after} {
		docs, err := ytbx.LoadYAMLDocuments(text)
		if err != nil {
			return fmt.Errorf("compare: %w", err)
		}
		inputs[i] = ytbx.InputFile{Location: file, Documents: docs}
	}
	found, err := dyff.CompareInputFiles(inputs[0], inputs[1])
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	return (&dyff.HumanReport{Report: found, OmitHeader: true}).WriteReport(w)
}
