package source

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
)

// runConfig is the configuration in what slipway report writes.
const runConfig = "config.yaml"

// Recorded reads a configuration: file itself or, where that is the directory of a run, the one in
// it, which the run has recorded.
func Recorded(file string, io console.Streams) (text []byte, recorded bool, err error) {
	if info, err := os.Stat(file); file == "-" || err != nil || !info.IsDir() {
		text, err = Contents(file, io)
		return text, false, err
	}
	name := filepath.Join(file, runConfig)
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() { // whoever made the directory may have put a link to another file there, or a pipe
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err == nil {
		text, err = bounded.File(name, bounded.Written)
	}
	return text, true, err
}

// Contents is what a file holds, or standard input (-).
func Contents(file string, io console.Streams) ([]byte, error) {
	if file == "-" {
		return bounded.Read(io.In, bounded.Written)
	}
	return bounded.File(file, bounded.Written)
}
