package origin

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-sh/slipway/ci/origin/refused"
)

// NoDigest refuses an image to build a bundle in that is not named by digest.
func NoDigest(base string) *Refusal {
	return &Refusal{Code: codeNoBundle, Class: Usage, Op: "build a bundle", Err: fmt.Errorf("the image %s is not named by digest, so that anything might build what everybody trusts", base),
		Fix: "name one of Debian 12 with Go by its digest: dagger call bundle --base docker.io/library/golang:1.26-bookworm@sha256:…"}
}

// NoBase refuses an image by its reference in which a bundle was to be built, and which the
// engine could not take, for err.
func NoBase(ref string, err error) *Refusal {
	host, _, _ := strings.Cut(ref, "/")
	reason := refused.Read(err.Error(), ref, host, host)
	return &Refusal{Code: reason.Code(), Class: Preflight, Op: "take the image " + ref + " to build in", Err: err,
		Fix: "name one of Debian 12 with Go that the engine can pull, with --base REF; or " + reason.Remedy(refused.Engine, host)}
}

// NotPrepared refuses an image by its reference in which what a build needs could not be
// installed; said is what the command that tried printed on standard error.
func NotPrepared(ref, said string) *Refusal {
	return &Refusal{Code: codeBuild, Class: Preflight, Op: "install what a build needs in the image " + ref, Err: errors.New(strings.TrimSpace(said)),
		Fix: "name an image of Debian 12 with Go, whose package mirrors the engine reaches: dagger call bundle --base docker.io/library/golang:1.26-bookworm@sha256:…"}
}

// codedError is how the build programs end: code, message and remedy.
var codedError = regexp.MustCompile(`(?ms)^error ([A-Z]{3}-\d{3}): (.*?)\n  remedy: ([^\n]*)`)

// NotBuilt refuses what make bundle did in a container, for what it printed on standard error.
func NotBuilt(said string) *Refusal {
	r := &Refusal{Code: codeBuild, Class: Preflight, Op: "build a bundle",
		Fix: "read what it printed above, then run it again, which goes on with what was built: dagger call bundle"}
	end := strings.Split(strings.TrimSpace(said), "\n")
	r.Err = errors.New(strings.Join(end[max(0, len(end)-15):], "\n"))
	if is := codedError.FindStringSubmatch(said); is != nil {
		r.Err = errors.New(is[2])
		if is[1] != codeBuild { // of which the remedy is a log in the container
			r.Code, r.Fix = is[1], is[3]
		}
	}
	return r
}
