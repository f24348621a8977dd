// Package diff shows what differs between two YAML files.
package diff

import (
	"fmt"
	"io"

	"github.com/gonvenience/ytbx"
	"github.com/homeport/dyff/pkg/dyff"
)

// YAML shows what differs between two versions of a file.
func YAML(w io.Writer, file string, before, after []byte) error {
	load := func(text []byte) (ytbx.InputFile, error) {
		docs, err := ytbx.LoadYAMLDocuments(text)
		return ytbx.InputFile{Location: file, Documents: docs}, err
	}
	from, err := load(before)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	to, err := load(after)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	report, err := dyff.CompareInputFiles(from, to)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	human := dyff.HumanReport{Report: report, OmitHeader: true}
	if err := human.WriteReport(w); err != nil {
		return fmt.Errorf("show the difference: %w", err)
	}
	return nil
}
