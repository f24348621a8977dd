// Package bundle reads and checks a bundle: the directory of tools, images and
// manifests that a run uses in place of registries and download sites. Its
// layout is in docs/architecture.md. The package is light: the conductor, which
// Dagger compiles, imports it.
package bundle

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
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// IndexFile is the name of the index in a bundle's directory.
const IndexFile = "bundle.json"

// maxIndex is how much an index may have: a usual one has 20 kB. An empty file takes two bytes of it,
// and hundreds of memory.
const maxIndex = 4 << 20

// Format is the version of bundle.json that this package reads and writes.
const Format = 1

// Host is the registry host of every image of a bundle. Nothing answers there:
// the images are loaded from the bundle's archives.
const Host = imageref.Own

// The archives of a bundle.
const (
	ToolchainArchive = "images/toolchain.tar"
	NodeArchive      = "images/node.tar"
	WorkloadArchive  = "images/workloads.tar"

	// AddedDir has the archives of what `slipway bundle add` put in, one an image. What
	// the index does not list there is what an interrupted one left; nothing reads it,
	// and the next one removes it.
	AddedDir = "images/added"
)

// The codes of this package's faults.
const (
	// CodeAbsent: there is no bundle at that place. Where there is no directory
	// either, `dagger call` itself says so before Slipway runs, and exits with 1.
	CodeAbsent fault.Code = "BUN-001"
	// CodeIndex: `bundle.json` cannot be understood.
	CodeIndex fault.Code = "BUN-002"
	// CodeContent: files of the bundle are missing, differ from `bundle.json`
	// or are not in it; each is named.
	CodeContent fault.Code = "BUN-003"
	// CodePlatform: the bundle is for another platform.
	CodePlatform fault.Code = "BUN-004"
	// CodeLock: the bundle, or a lock file, holds other versions than the program's lock.
	CodeLock fault.Code = "BUN-005"
)

// The remedies for a bundle that holds something else than it should, for one that is
// damaged, and for one that is not there.
const (
	Fix        = "build the bundle anew: make bundle"
	FixDamaged = "move its folder away, then build it anew: make bundle; in place of a copy, copy that one again; " +
		"add the images again that were added to it: slipway bundle add DIR REF"
	FixAbsent = "build one with make bundle, or give the path of one: --bundle DIR"
)

// What a bundle says of itself; see the kinds SBOM and Provenance.
const (
	SBOMFile       = "sbom.cdx.json"
	ProvenanceFile = "provenance.json"
)

// SignatureFile is the signature of the index, beside it: a sigstore bundle.
const SignatureFile = "bundle.sigstore.json"

// Kind says what a file of a bundle is.
type Kind string

// The kinds of files.
const (
	Tool       Kind = "tool"       // a program for the steps, in bin/
	Images     Kind = "images"     // an OCI archive, in images/
	Manifest   Kind = "manifest"   // Kubernetes objects, in manifests/
	SBOM       Kind = "sbom"       // what the bundle consists of: CycloneDX
	Provenance Kind = "provenance" // what it was built from: trust.Provenance
)

// Index is the content of bundle.json. Files are sorted by path, images by name.
type Index struct {
	Version  int     `json:"version"`  // Format
	Platform string  `json:"platform"` // "linux/amd64"
	Files    []File  `json:"files"`
	Images   []Image `json:"images"`
}

// File is one file of a bundle.
type File struct {
	Path    string `json:"path"` // below the bundle's directory, with slashes
	Name    string `json:"name"` // "terraform", "workloads", "argocd"
	Kind    Kind   `json:"kind"`
	Version string `json:"version"`
	Origin  string `json:"origin"` // "go:<module>@<version>#<package>", "source:sha256:<hex>", "images"
	SHA256  string `json:"sha256"` // hex
	Size    int64  `json:"size"`   // bytes
}

// Image is one image of a bundle's archives.
type Image struct {
	Name   string `json:"name"`   // short name: "gitea"; of one that was added: its reference
	Ref    string `json:"ref"`    // its name in the archive: "slipway.local/gitea:1.26.0"; of one that was added: by digest
	Digest string `json:"digest"` // "sha256:…" of its manifest
	// Archive is the path of the archive that holds an image that was added; empty for
	// the others.
	Archive string `json:"archive,omitempty"`
	// Index is the digest of the index of several platforms by which its registry knows an
	// added image. Its archive holds it, and of its images that of the bundle's platform.
	Index string `json:"index,omitempty"`
	// StandsFor are the references by which manifests and charts name the image, as
	// imageref.Normal writes them.
	StandsFor []string `json:"standsFor,omitempty"`
}

// Added reports whether `slipway bundle add` put the image in.
func (i Image) Added() bool { return i.Archive != "" }

// In is the path in the bundle of the archive that holds the image.
func (i Image) In() string {
	switch {
	case i.Added():
		return i.Archive
	case i.Name == "toolchain":
		return ToolchainArchive
	case i.Name == "node":
		return NodeArchive
	}
	return WorkloadArchive
}

// Repository is the path of its repository below that of a registry to which the bundle was pushed:
// its short name, or the repository of the reference that it was added under, in one part, for
// registries differ in how many they take.
func (i Image) Repository() string {
	if !i.Added() {
		return i.Name
	}
	r, err := imageref.Parse(i.Name)
	if err != nil {
		return ""
	}
	flat := strings.NewReplacer("/", "-", ":", "-", "[", "", "]", "").Replace(strings.ToLower(r.Repository()))
	return strings.Trim(flat, "-")
}

// Pinned is the reference by digest: "slipway.local/gitea@sha256:…".
func (i Image) Pinned() string {
	repository, _, _ := strings.Cut(i.Ref, "@")
	if at := strings.LastIndexByte(repository, ':'); at > strings.LastIndexByte(repository, '/') {
		repository = repository[:at]
	}
	return repository + "@" + i.Digest
}

// Names are the references of an image that stands for these ones, sorted: themselves,
// and in each of their repositories that by each of the digests that is not empty, its own
// and that of its index.
func Names(standsFor []string, digests ...string) []string {
	var out []string
	for _, s := range standsFor {
		out = append(out, s)
		r, err := imageref.Parse(s)
		if err != nil {
			continue // an index with one is refused
		}
		for _, d := range digests {
			if d != "" {
				out = append(out, r.At(d))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Bundle is a bundle whose index was read. Its files are unchecked until Verify, and whose
// bundle it is until package trust has checked it.
type Bundle struct {
	Index
	dir  string
	read string // digest of the bytes that the index was read from
}

// Read reads the index of the bundle in dir. It fails with CodeAbsent where
// there is none and with CodeIndex where it cannot be understood.
func Read(dir string) (*Bundle, error) {
	name := filepath.Join(dir, IndexFile)
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() { // as Verify wants of the others
		err = fmt.Errorf("%s is not a regular file", name)
	}
	var data []byte
	if err == nil {
		data, err = bounded.File(name, maxIndex)
	}
	if err != nil {
		why := err
		if errors.Is(err, fs.ErrNotExist) {
			why = fmt.Errorf("%s holds no %s", dir, IndexFile)
		}
		return nil, &fault.Fault{Code: CodeAbsent, Class: fault.Preflight, Op: "read the bundle", Fix: FixAbsent, Err: why}
	}
	b, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if b.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	return b, nil
}

// Parse reads an index that is not on this file system, as the Dagger module
// has it. Verify of such a bundle fails.
func Parse(data []byte) (*Bundle, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var index Index
	var err error
	if len(data) > maxIndex {
		err = bounded.TooLarge("", maxIndex)
	}
	if err == nil {
		err = bounded.Error(decoder.Decode(&index))
	}
	if err == nil {
		err = index.Validate()
	}
	if err != nil {
		return nil, &fault.Fault{
			Code: CodeIndex, Class: fault.Preflight, Op: "read " + IndexFile, Fix: FixDamaged, Err: err,
		}
	}
	return &Bundle{Index: index, read: DigestOf(data)}, nil
}

// Marshal is the bytes of bundle.json: sorted, indented, the same for the same
// content.
func (x Index) Marshal() ([]byte, error) {
	x.Files = slices.SortedFunc(slices.Values(x.Files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	x.Images = slices.SortedFunc(slices.Values(x.Images), func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	for i := range x.Images {
		x.Images[i].StandsFor = slices.Sorted(slices.Values(x.Images[i].StandsFor))
	}
	if err := x.Validate(); err != nil {
		return nil, fmt.Errorf("write %s: %w", IndexFile, err)
	}
	data, err := json.MarshalIndent(x, "", "  ")
	return append(data, '\n'), err
}

// Digest identifies the bundle's whole content: "sha256:…" of its index.
func (x Index) Digest() (string, error) {
	data, err := x.Marshal()
	if err != nil {
		return "", err
	}
	return DigestOf(data), nil
}

// Manifests reports whether the bundle has any.
func (x Index) Manifests() bool {
	return slices.ContainsFunc(x.Files, func(f File) bool { return f.Kind == Manifest })
}

// ReadDigest is the digest of the index as it was read, "sha256:…": what sha256sum says of
// bundle.json.
func (b *Bundle) ReadDigest() string { return b.read }

// DigestOf is the digest of data, "sha256:…".
func DigestOf(data []byte) string { return "sha256:" + SumOf(data) }

// SumOf is the sha256 of data, in hex.
func SumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Images gives every image that has a short name as a reference by digest:
// "gitea" → "slipway.local/gitea@sha256:…".
func (b *Bundle) Images() map[string]string {
	refs := make(map[string]string, len(b.Index.Images))
	for _, image := range b.Index.Images {
		if !image.Added() {
			refs[image.Name] = image.Pinned()
		}
	}
	return refs
}

// Dir is the directory that the bundle was read from, links resolved; empty for a
// parsed one.
func (b *Bundle) Dir() string { return b.dir }

// Path is where a file of the bundle is, given its path in the index.
func (b *Bundle) Path(name string) string { return filepath.Join(b.dir, filepath.FromSlash(name)) }

// Tool is the file of a tool: "terraform". The second value says whether the
// bundle holds it.
func (b *Bundle) Tool(name string) (File, bool) {
	at := slices.IndexFunc(b.Files, func(f File) bool { return f.Kind == Tool && f.Name == name })
	if at < 0 {
		return File{}, false
	}
	return b.Files[at], true
}

// Check fails with CodePlatform unless the bundle is for platform, such as
// "linux/amd64": that of the engine, which is not always that of the client.
func (b *Bundle) Check(platform string) error {
	if b.Platform == platform {
		return nil
	}
	_, arch, _ := strings.Cut(platform, "/")
	return &fault.Fault{
		Code: CodePlatform, Class: fault.Preflight, Op: "use the bundle",
		Fix: "build that for the engine: make bundle ARCH=" + arch + ", and give it: --bundle DIR --bundle-digest sha256:…",
		Err: fmt.Errorf("it is for %s, the engine runs on %s", b.Platform, platform),
	}
}
