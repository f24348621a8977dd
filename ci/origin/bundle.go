package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The paths in a bundle of what a call needs to start.
const (
	Index     = "bundle.json"
	Program   = "bin/slipway"
	Toolchain = "images/toolchain.tar"
)

const rebuild = "move the bundle's folder away, then build it anew: make bundle"

// Unverified, in place of a digest, takes any bundle.
const Unverified = "none"

// Nowhere refuses a call that was given neither a bundle nor a lock.
func Nowhere() *Refusal {
	return &Refusal{Code: codeNoImages, Class: Usage, Op: "choose where images come from",
		Err: errors.New("neither a bundle nor a lock was given"),
		Fix: "run make bundle, which writes BUNDLE=DIR into .env, or give one before the function: dagger call --bundle DIR install, or dagger call --lock slipway.lock.json install"}
}

// NoBundle refuses a directory without an index; err says why there is none.
func NoBundle(err error) *Refusal {
	return &Refusal{Code: codeNoBundle, Class: Preflight, Op: "read the bundle's " + Index, Err: err,
		Fix: "build one with make bundle, or give the path of one before the function: dagger call --bundle DIR install"}
}

// Vouched fails unless index is that of the bundle that is wanted: the one with this digest,
// "sha256:<hex>", or any if that is Unverified. Whoever can write a bundle can write its index
// too, so that this comes before anything of the bundle runs.
func Vouched(index []byte, digest string) error {
	is := "sha256:" + sumOf(index)
	switch digest {
	case Unverified, is:
		return nil
	case "":
		return untrusted(fmt.Errorf("it is %s, and nothing says that this is the one you want", is))
	}
	return untrusted(fmt.Errorf("it is %s, and --bundle-digest, or bundleDigest in .env, says %s", is, digest))
}

func untrusted(err error) error {
	return &Refusal{Code: codeTrust, Class: Preflight, Op: "trust the bundle", Err: err,
		Fix: "run make bundle, which writes bundleDigest=sha256:… into .env; or give the digest that who built the bundle names, " +
			"before the function: dagger call --bundle-digest sha256:… install; of a signed bundle slipway bundle verify DIR prints it; --bundle-digest none takes any bundle"}
}

// NotVerified refuses a bundle of which its program, which is the one that the index names,
// said this on standard error.
func NotVerified(stderr string) error {
	why := strings.TrimSpace(stderr)
	for line := range strings.Lines(stderr) {
		if coded, ok := strings.CutPrefix(line, "error "); ok {
			if _, text, ok := strings.Cut(coded, ": "); ok {
				why = strings.TrimPrefix(strings.TrimSpace(text), "verify the bundle /bundle: ")
				break
			}
		}
	}
	return &Refusal{Code: codeContent, Class: Preflight, Op: "verify the bundle", Err: errors.New(why), Fix: rebuild}
}

// Damaged refuses a bundle whose file path cannot be used.
func Damaged(path string, err error) *Refusal {
	return &Refusal{Code: codeContent, Class: Preflight, Op: "take " + path + " out of the bundle", Err: err, Fix: rebuild}
}

// ProgramDigest is the digest that Program has by a bundle's index, as Dagger
// v0.20.8 calls that of a file without its metadata: the sha256 of the content's
// sha256 (core/file.go, File.Digest). It refuses a bundle that is not for platform, the
// engine's: what is in it would not run there, or in emulation.
func ProgramDigest(index []byte, platform string) (string, error) {
	var x struct {
		Platform string `json:"platform"`
		Files    []struct {
			Path   string `json:"path"`
			SHA256 string `json:"sha256"`
		} `json:"files"`
	}
	wrong := func(err error) error {
		return &Refusal{Code: codeIndex, Class: Preflight, Op: "read the bundle's " + Index, Err: err, Fix: rebuild}
	}
	if err := json.Unmarshal(index, &x); err != nil {
		return "", wrong(err)
	}
	if x.Platform != platform {
		_, arch, _ := strings.Cut(platform, "/")
		return "", &Refusal{Code: codePlatform, Class: Preflight, Op: "use the bundle", Err: fmt.Errorf("it is for %s, the engine runs on %s", x.Platform, platform),
			Fix: "build that for the engine: make bundle ARCH=" + arch + ", and give it before the function: dagger call --bundle DIR --bundle-digest sha256:… install"}
	}
	for _, f := range x.Files {
		if f.Path != Program {
			continue
		}
		raw, err := hex.DecodeString(f.SHA256)
		if err != nil || len(raw) != sha256.Size {
			return "", wrong(fmt.Errorf("%s has no sha256", Program))
		}
		sum := sha256.Sum256(raw)
		return "sha256:" + hex.EncodeToString(sum[:]), nil
	}
	return "", wrong(fmt.Errorf("it does not name %s", Program))
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
