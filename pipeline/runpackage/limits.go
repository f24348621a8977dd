package runpackage

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-sh/slipway/bounded"
)

// What a package may be made of, so that a forged one fills no memory, disk or screen, and does not
// take days.
const (
	maxArchive = bounded.Packed / 2 // compressed
	maxTotal   = bounded.Packed     // the tar archive
	maxIndex   = 32 << 20           // that of 50 000 files has about 12 MiB
	maxFiles   = 50_000             // also with the folders that they are in
	maxName    = 1024
	maxDepth   = 32   // folders that a file is in
	maxTexts   = 1000 // hidden settings, and as many places of secrets
	maxText    = 4096
)

// checkSize returns an error if a file is larger than one of its name may be.
func checkSize(name string, size int64) error {
	limit := int64(maxTotal)
	switch name {
	case IndexFile:
		limit = maxIndex
	case SignatureFile:
		limit = bounded.Written
	case ConfigFile, BeforeDir + "/" + ConfigFile:
		limit = bounded.Written
	case RunDir + "/report.json", ImagesFile:
		limit = bounded.Generated
	}
	if size <= limit {
		return nil
	}
	return fmt.Errorf("it has %d bytes, and may have %d MiB", size, limit>>20)
}

// reserved reports whether a name is that of what a package has besides its files.
func reserved(name string) bool { return name == IndexFile || name == SignatureFile }

// checkName returns what is wrong with the name of a file.
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("its name is too long: %d bytes, and at most %d", len(name), maxName)
	case strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("it is in more than %d folders", maxDepth)
	case !fs.ValidPath(name) || name == "." || !filepath.IsLocal(filepath.FromSlash(name)),
		strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || r == ':' || !unicode.IsPrint(r) }):
		return errors.New("its name would lead out of the package, or is not one on every system")
	}
	return nil
}

// checkNames calls problem with what is wrong with names as a whole: a file where others need a
// directory, or more directories than anybody needs.
func checkNames(names []string, problem func(format string, args ...any)) {
	known, folders := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, name := range names {
		for dir := name; strings.Contains(dir, "/"); folders[dir] = true {
			if dir = dir[:strings.LastIndexByte(dir, '/')]; known[dir] {
				problem("%q: %q is a file", name, dir)
				break
			}
		}
		if len(names)+len(folders) > maxFiles {
			problem("it has more than %d files and folders", maxFiles)
			return
		}
	}
}

// texts are those of a package's info.
func (i Info) texts() []string {
	all := slices.Concat(i.Hidden, []string{
		i.Run, i.Workflow, i.Deployment, i.Provider, i.Outcome, i.Code, i.Step, i.Slipway, i.Engine, i.Kernel,
		i.Platform.Name, i.Platform.Version, i.Platform.Digest,
	})
	if b := i.Before; b != nil {
		all = append(all, b.Name, b.Version, b.Digest, b.Style)
	}
	for setting, place := range i.Secrets {
		all = append(all, setting, place)
	}
	return all
}

// checkTexts returns an error if it says more than any run has to say.
func (i Info) checkTexts() error {
	if len(i.Hidden) > maxTexts || len(i.Secrets) > maxTexts {
		return fmt.Errorf("%s says more than %d hidden settings or secrets", IndexFile, maxTexts)
	}
	for _, s := range i.texts() {
		if len(s) > maxText {
			return fmt.Errorf("%s has a text of %d bytes, and may have texts of %d", IndexFile, len(s), maxText)
		}
	}
	return nil
}

// printable returns an error unless everything in it can be shown on a terminal as it is.
func (i Info) printable() error {
	for _, s := range i.texts() {
		if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("%s says %q, which cannot be printed", IndexFile, s)
		}
	}
	return nil
}
