// Package runpackage reads and writes run packages: one archive with everything that a run
// was made of and left, an index of its files, and a signature of that.
//
// A package is a tar archive compressed with zstd. Its first entry is the index, which has the
// sha256 of the other files; the second is the signature of the index, if it has one. The same
// files make the same bytes, apart from the signature of an ECDSA key.
package runpackage

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
)

// The codes of this package's faults.
const (
	// CodeUnreadable: the file cannot be read, or is no run package that this program knows.
	CodeUnreadable fault.Code = "PKG-001"
	// CodeAltered: the package is not as it was written; everything that differs is named.
	CodeAltered fault.Code = "PKG-002"
	// CodeSignature: the package is not signed with the key that it must be signed with.
	CodeSignature fault.Code = "PKG-003"
)

// Suffix is how the names of packages end.
const Suffix = ".tar.zst"

// The first entries of a package.
const (
	IndexFile     = "index.json"          // what the package says of its run and of its files
	SignatureFile = "index.sigstore.json" // a sigstore bundle with a statement about the index
)

// PredicateType is the type of what a signature states about an index.
const PredicateType = "https://slipway.sh/run-package/v1"

// The names in a package.
const (
	ConfigFile = "config.yaml" // the configuration as used, with every default
	ImagesFile = "images.json" // the digests of tools and images
	ReleaseDir = "release"     // the platform release
	RunDir     = "run"         // the report of the run: see docs/report.md
	BeforeDir  = "before"      // what an upgrade began from: ReleaseDir and ConfigFile
)

// Format is the version of packages that this program writes and reads.
const Format = 1

// Info is what a package says of its run.
type Info struct {
	Format     int       `json:"format"` // see Format
	Run        string    `json:"run"`    // id
	Workflow   string    `json:"workflow"`
	Deployment string    `json:"deployment"`
	Provider   string    `json:"provider"`
	Outcome    string    `json:"outcome"`        // as in the run's record
	Code       string    `json:"code,omitempty"` // of the fault
	Step       string    `json:"step,omitempty"` // "stage/step" that failed first, or was running
	Started    time.Time `json:"started"`
	Slipway    string    `json:"slipway"` // version of the program that carried the run out
	Platform   Platform  `json:"platform"`
	Before     *Before   `json:"before,omitempty"` // of an upgrade: what it began from, where that was still known
	Engine     string    `json:"engine"`           // version of the run's Dagger engine; empty: not known
	Kernel     string    `json:"kernel,omitempty"` // of the engine's machine, as the run saw it
	// OtherImages says that the package was made with another bundle or lock than the run: it
	// names no images, and of tools what the run's record says.
	OtherImages bool `json:"otherImages,omitempty"`
	// Secrets are the places where the configuration finds secrets, by setting.
	Secrets map[string]string `json:"secrets,omitempty"`
	// Hidden are settings whose values look like secrets and are not in the package.
	Hidden []string `json:"hidden,omitempty"`
}

// Platform is the platform release of a run.
type Platform struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"` // of its files
}

// Before is the platform release that was installed when an upgrade began.
type Before struct {
	Platform
	Style string `json:"style,omitempty"` // of the upgrade; empty: it ended before that mattered
}

// File is a file of a package.
type File struct {
	Data       []byte
	Executable bool
}

// Files are the files of a package by name, with slashes, without the index and its signature.
type Files map[string]File

// names are sorted.
func (f Files) names() []string { return slices.Sorted(maps.Keys(f)) }

// Sub are the files below a directory, by their names in it.
func (f Files) Sub(dir string) Files {
	out := Files{}
	for name, file := range f {
		if below, ok := strings.CutPrefix(name, dir+"/"); ok {
			out[below] = file
		}
	}
	return out
}

// Add puts the files of fsys below a directory.
func (f Files) Add(dir string, fsys fs.FS) error {
	return bounded.EachFile(fsys, func(name string) error {
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return err
		}
		data, err := bounded.FS(fsys, name, bounded.Generated)
		if err == nil {
			f[dir+"/"+name] = File{Data: data, Executable: info.Mode()&0o111 != 0}
		}
		return err
	})
}
