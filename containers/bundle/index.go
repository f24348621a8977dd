package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/imageref"
)

// Validate reports every problem of an index at once.
func (x Index) Validate() error {
	if x.Version != Format {
		return fmt.Errorf("its version is %d, this Slipway reads version %d", x.Version, Format)
	}
	var problems bounded.Problems
	report := problems.Add
	if x.Platform != "linux/amd64" && x.Platform != "linux/arm64" {
		report("platform: %q is neither linux/amd64 nor linux/arm64", x.Platform)
	}
	if len(x.Files) == 0 {
		report("files: the list is empty")
	}
	paths := map[string]bool{}
	for i, f := range x.Files {
		switch odd := unprintable(f.Path, f.Name, string(f.Kind), f.Version, f.Origin); {
		case odd != "":
			report("files[%d]: %q cannot be printed", i, odd)
		case f.Path == "" || path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || strings.HasPrefix(f.Path, "..") || f.Path == IndexFile:
			report("files[%d]: %q is not a path inside the bundle", i, f.Path)
		case paths[f.Path]:
			report("files[%d]: %s is listed twice", i, f.Path)
		case !IsSHA256(f.SHA256):
			report("files[%d]: %s has no sha256", i, f.Path)
		case f.Size < 0:
			report("files[%d]: %s has a negative size", i, f.Path)
		}
		paths[f.Path] = true
	}
	names, overrides := map[string]bool{}, map[string]bool{}
	for i, image := range x.Images {
		switch odd := unprintable(image.Name, image.Ref); {
		case odd != "":
			report("images[%d]: %q cannot be printed", i, odd)
		case image.Name == "" || image.Ref == "":
			report("images[%d]: name and ref are required", i)
		case names[image.Name]:
			report("images[%d]: %s is listed twice", i, image.Name)
		case !IsDigest(image.Digest) || (image.Index != "" && !IsDigest(image.Index)):
			report("images[%d]: %s has no digest", i, image.Name)
		case image.Archive != "" && (!paths[image.Archive] || path.Dir(image.Archive) != AddedDir):
			report("images[%d]: the archive of %s is no file of the bundle in %s", i, image.Name, AddedDir)
		}
		names[image.Name] = true
		CheckStandsFor(image.StandsFor, overrides, func(err error) { report("images[%d]: %s: %w", i, image.Name, err) })
	}
	return errors.Join(problems...)
}

// CheckStandsFor reports what is wrong with the references that an image stands for. seen are those
// of the images before.
func CheckStandsFor(references []string, seen map[string]bool, report func(error)) {
	for _, s := range references {
		switch normal, err := imageref.Normal(s); {
		case err != nil:
			report(fmt.Errorf("it stands for something else: %w", err))
		case normal != s:
			report(fmt.Errorf("it stands for %s, which is written %s", s, normal))
		case seen[s]:
			report(fmt.Errorf("it stands for %s, as another image does", s))
		}
		seen[s] = true
	}
}

// unprintable is the first text that is no part of a line, if there is one: lists and errors name it.
func unprintable(texts ...string) string {
	for _, s := range texts {
		if bounded.Line(s) != s {
			return s
		}
	}
	return ""
}

// IsDigest reports whether s is "sha256:" and a sha256.
func IsDigest(s string) bool {
	sha, found := strings.CutPrefix(s, "sha256:")
	return found && IsSHA256(sha)
}

// IsSHA256 reports whether s is a sha256 in hex.
func IsSHA256(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 2*sha256.Size
}
