package cli

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/pflag"
)

// format is how a command prints its result: text or json.
type format string

// addFlag declares the flag.
func (f *format) addFlag(set *pflag.FlagSet) {
	*f = "text"
	set.VarP(f, "output", "o", `format: "text" or "json"`)
}

func (f *format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("give text or json")
	}
	*f = format(text)
	return nil
}

// Type implements pflag.Value.
func (f *format) Type() string { return "string" }

// print prints v as JSON, or calls text.
func (f *format) print(w io.Writer, v any, text func(io.Writer) error) error {
	if *f == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	return text(w)
}
