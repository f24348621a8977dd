package platform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/slipway-sh/slipway/fault"
)

// The codes of upgrades.
const (
	// CodeNoRoute: no way leads from the installed release to the wanted one.
	CodeNoRoute fault.Code = "PLT-021"
	// CodeSame: the release to upgrade to is already installed.
	CodeSame fault.Code = "PLT-023"
)

// Same is the fault of an upgrade to the release that is installed. install is how to install
// that once more.
func Same(version, install string) error {
	return &fault.Fault{
		Code: CodeSame, Class: fault.Usage, Op: "upgrade to release " + version, Err: errors.New("it is installed already"),
		Fix: "name a newer one: --to VERSION; to repair differences from this release: " + install,
	}
}

// Follows reports whether the release can be installed over that version of the platform.
func (r *Release) Follows(version string) bool { return slices.Contains(r.UpgradableFrom, version) }

// Older reports whether version a comes before b. Both are semantic versions, as those of
// every release that was loaded are; of others neither is older.
func Older(a, b string) bool {
	x, errX := semver.StrictNewVersion(a)
	y, errY := semver.StrictNewVersion(b)
	return errX == nil && errY == nil && x.LessThan(y)
}

// Route returns the fewest releases, out of all, that bring the platform from one version to
// another when each is installed over the one before it, without the installed release. If there
// is no such way, the error is a fault PLT-021 that says where it ends.
func Route(all []*Release, from, to string) ([]*Release, error) {
	type way struct {
		at   string
		over []*Release
	}
	reached := []string{from}
	for next := []way{{at: from}}; len(next) > 0; next = next[1:] {
		here := next[0]
		if here.at == to {
			return here.over, nil
		}
		for _, r := range all {
			if r.Follows(here.at) && !slices.Contains(reached, r.Version) {
				reached = append(reached, r.Version)
				next = append(next, way{r.Version, append(slices.Clone(here.over), r)})
			}
		}
	}
	return nil, noRoute(all, from, to, reached[1:])
}

// noRoute says why no way leads from one release to another.
func noRoute(all []*Release, from, to string, reached []string) error {
	f := &fault.Fault{
		Code: CodeNoRoute, Class: fault.Usage, Op: "find the way from release " + from + " to " + to,
		Fix: "name a release that can be installed over " + from,
	}
	target := slices.IndexFunc(all, func(r *Release) bool { return r.Version == to })
	switch {
	case target < 0:
		var known []string
		for _, r := range all {
			known = append(known, r.Version)
		}
		f.Err = fmt.Errorf("there is no release %s; there are %s", to, strings.Join(known, ", "))
	case Older(to, from):
		f.Err = fmt.Errorf("%s is older than %s, and a release is never installed over a newer one", to, from)
	case len(all[target].UpgradableFrom) == 0:
		f.Err = errors.New("release " + to + " says of no other one that it can be upgraded (upgradableFrom)")
	default:
		f.Err = fmt.Errorf("%s can be upgraded from %s only", to, strings.Join(all[target].UpgradableFrom, ", "))
	}
	if len(reached) > 0 {
		f.Fix += ": " + strings.Join(reached, ", ")
	} else {
		f.Fix = "stay at " + from + ", or leave it out of --from: no release that is at hand can be installed over it; one of your own can, which has it under upgradableFrom: --platform DIR"
	}
	return f
}
