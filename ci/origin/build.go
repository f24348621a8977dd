package origin

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// NoDigest refuses an image to build a bundle in that is not named by digest.
func NoDigest(base string) *Refusal {
	return &Refusal{Code: codeNoBundle, Class: Usage, Op: "build a bundle", Err: fmt.Errorf("the image %s is not named by digest, so that anything might build what everybody trusts", base),
		Fix: "name one of Debian 12 with Go by its digest: dagger call bundle --base docker.io/library/golang:1.26-bookworm@sha256:…"}
}

// NoBase refuses an image by its reference in which a bundle was to be built, and which the
// engine could not take, for err.
func NoBase(ref string, err error) *Refusal {
	r := notPulled("take the image "+ref+" to build in", ref, err)
	r.Fix = "name one of Debian 12 with Go that the engine can pull, with --base REF; or " + r.Fix
	return r
}

// anotherBase is the remedy where an image to build in will not do.
const anotherBase = "name an image of Debian 12 with Go, whose package mirrors the engine reaches: dagger call bundle --base docker.io/library/golang:1.26-bookworm@sha256:…"

// NotPrepared refuses an image by its reference in which what a build needs could not be
// installed; stderr is what the command that tried printed.
func NotPrepared(ref, stderr string) *Refusal {
	return &Refusal{Code: codeBuild, Class: Preflight, Op: "install what a build needs in the image " + ref, Err: lastLines(stderr), Fix: anotherBase}
}

// codedError is how the build programs end: code, message and remedy.
var codedError = regexp.MustCompile(`(?ms)^error ([A-Z]{3}-\d{3}): (.*?)\n  remedy: `)

// NotBuilt refuses what make bundle did in a container, for what it printed on standard error.
// The remedies in that are for somebody who calls it on a machine.
func NotBuilt(stderr string) *Refusal {
	r := &Refusal{Code: codeBuild, Class: Preflight, Op: "build a bundle", Err: lastLines(stderr),
		Fix: "read what it printed above, then run it again, which goes on with what was built: dagger call bundle"}
	if is := codedError.FindStringSubmatch(stderr); is != nil {
		r.Code, r.Err = is[1], errors.New(is[2])
	}
	switch r.Code {
	case codeMachine:
		r.Fix = anotherBase
	case codeRelease:
		r.Fix = "give the directory of a platform release: dagger call bundle --platform DIR"
	}
	return r
}

// lastLines is the end of what a command printed: there it says why it failed.
func lastLines(text string) error {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return errors.New(strings.Join(all[max(0, len(all)-15):], "\n"))
}
