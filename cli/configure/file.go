package configure

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// destination is the file to write for a deployment; empty: standard output, or not known yet.
func (c *Command) destination(name string) (string, error) {
	switch c.out {
	case "-":
		return "", nil
	case "":
	default:
		if info, err := os.Stat(filepath.Dir(c.out)); err != nil || !info.IsDir() {
			return "", usage.Errorf("--out is %s; give a file in a folder that exists", c.out)
		}
		return c.out, nil
	}
	folder, err := config.DefaultFolder()
	if err != nil {
		return "", err
	}
	if folder == "" {
		return "", usage.Errorf("there is no folder to keep it in: set HOME or " + config.EnvFolder + ", or give --out FILE")
	}
	if name == "" {
		return "", nil
	}
	file := folder.File(name)
	if file == "" {
		return "", usage.Errorf("%s is %q; give 1 to 15 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen", cmp.Or(c.named, "--name"), name)
	}
	return file, nil
}

// write writes the file and returns the message about it.
func (c *Command) write(io console.Streams, cfg *config.Config, text []byte) (message string, err error) {
	name := cfg.Global.Name
	if c.out == "-" {
		return string(text), nil
	}
	file, err := c.destination(name)
	if err != nil {
		return "", err
	}
	if before, err := readIfThere(file); err == nil && before != nil && !bytes.Equal(before, text) && !c.asks {
		c.changes(io.Err, file, before, text)
	}
	flag, current := "--name "+fault.Quote(name), ""
	if c.out == "" {
		current, err = c.store(io, name, text)
	} else {
		flag = "--config " + fault.Quote(c.out)
		err = atomicfile.Overwrite(file, text, 0o600)
	}
	if err != nil {
		fmt.Fprintf(io.Err, "\n%s\n\nslipway: this could not be written\n", text)
		return "", unwritten(file, err)
	}
	if atomicfile.IsStream(file) { // which may be standard output
		return "", nil
	}
	source.Warn(io.Err, cfg)
	next := "slipway install " + flag
	if _, err := c.source.Providers.Get(cfg.Provider); err != nil {
		next = fmt.Sprintf("slipway config explain %s   (nothing can be installed to %s yet)", flag, cfg.Provider)
	}
	return fmt.Sprintf("The configuration of deployment %s is %s\n%s\nNext:\n  %s\n", name, file, current, next), nil
}

// changes shows the changes to a file, without invalid values that may be secrets.
func (c *Command) changes(w io.Writer, file string, before, after []byte) {
	if d, err := answers.NewDraft(answers.NewSchema(c.describe(), nil), before); err == nil {
		if _, err := c.hide(d); err == nil {
			if hidden, err := d.Bytes(); err == nil {
				before = hidden
			}
		}
	}
	fmt.Fprintf(w, "\nWhat it changes in %s:\n", file)
	if err := console.Diff(w, file, before, after); err != nil {
		fmt.Fprintf(w, "  (%s)\n", err) // such as a file that is not YAML
	}
}

// codeUnwritten: the configuration cannot be written. It was printed, so that nothing is lost.
const codeUnwritten fault.Code = "CFG-014"

func unwritten(file string, err error) error {
	return &fault.Fault{Code: codeUnwritten, Class: fault.Usage, Op: "write " + file, Err: err,
		Fix: "give another place, --out FILE, or yourself access to that one"}
}

// store stores the file by name. The first one becomes the current one, which the result says.
func (c *Command) store(io console.Streams, name string, text []byte) (current string, err error) {
	folder, err := config.DefaultFolder()
	if err != nil {
		return "", err
	}
	if err := folder.Write(name, text); err != nil {
		return "", err
	}
	names, err := folder.Names()
	if err == nil && len(names) == 1 {
		err = folder.Use(name)
		current = "It is the current one: commands that name no deployment work on it (slipway use).\n"
	}
	if err != nil { // it is stored all the same
		fmt.Fprintf(io.Err, "slipway: choose it as the current deployment: %v\n", err)
		return "", nil
	}
	return current, nil
}

// readIfThere reads a file; nil if it does not exist or is a stream.
func readIfThere(file string) ([]byte, error) {
	if file == "" || atomicfile.IsStream(file) {
		return nil, nil
	}
	text, err := bounded.File(file, bounded.Written)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, unwritten(file, err)
	}
	return text, nil
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
