package platform

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/fault"
)

// CodeOutdated: the configuration was written for an older release, which had other names.
const CodeOutdated fault.Code = "CFG-040"

// Change is what a release changed in what users write for it. It is carried out in
// configurations that were written for an older one when they are upgraded over it.
type Change struct {
	Version string            `json:"version" is:"version"` // release that made the change
	Move    map[string]string `json:"move,omitempty"`       // moved settings, from: to, such as platform.settings.color: platform.settings.theme.color
	Remove  []string          `json:"remove,omitempty"`     // removed settings
}

// settingRE matches what a release may change in a configuration: what is in one of the
// sections of platform that the release gives its meaning.
var settingRE = regexp.MustCompile(`^platform\.(components|secrets|settings)(\.[A-Za-z0-9_-]+)+$`)

const settingWant = "a setting of the configuration below platform.components, platform.secrets or platform.settings"

// configuration checks what changed in what users write.
func (v *validator) configuration() {
	for i, c := range v.r.Configuration {
		field := fmt.Sprintf("configuration[%d]", i)
		if Older(v.r.Version, c.Version) {
			v.Add(field+".version", document.Quote(c.Version), "the version of this release, "+v.r.Version+", or an older one")
		}
		if i > 0 && !Older(v.r.Configuration[i-1].Version, c.Version) {
			v.Add(field+".version", document.Quote(c.Version), "a version after "+v.r.Configuration[i-1].Version+": the oldest one comes first")
		}
		if len(c.Move)+len(c.Remove) == 0 {
			v.Add(field, "nothing that changed", "move or remove")
		}
		v.change(field, c)
	}
}

// change checks that a change can be carried out in any order: no setting is in it twice.
func (v *validator) change(field string, c Change) {
	type place struct{ field, path string }
	var all []place
	for _, from := range slices.Sorted(maps.Keys(c.Move)) {
		at := field + ".move." + from
		all = append(all, place{at, from}, place{at, c.Move[from]})
	}
	for j, path := range c.Remove {
		all = append(all, place{fmt.Sprintf("%s.remove[%d]", field, j), path})
	}
	for j, p := range all {
		v.Match(p.field, p.path, settingRE, settingWant)
		for _, other := range all[:j] {
			if within(p.path, other.path) || within(other.path, p.path) {
				v.Add(p.field, document.Quote(p.path)+" beside "+document.Quote(other.path), "each setting once in a version: moved, removed, or moved to")
			}
		}
	}
}

// within reports whether a path is another one or a part of it.
func within(path, of string) bool { return path == of || strings.HasPrefix(path, of+".") }

// Since are the changes that a configuration needs which was written for the release of a
// version; with an empty version, all of them.
func (r *Release) Since(version string) []migrate.Step {
	var out []migrate.Step
	for _, c := range r.Configuration {
		if version == "" || Older(version, c.Version) {
			out = append(out, migrate.Step{Version: c.Version, Move: c.Move, Remove: c.Remove})
		}
	}
	return out
}

// Fits checks what the configuration says of the release's components, secrets and
// settings. One that was written for an older release is refused with the command that
// migrates it.
func (r *Release) Fits(cfg *config.Config) error {
	_, err := r.Off(cfg.Choices())
	err = errors.Join(err, r.Overrides(cfg.Overrides()), r.CheckSettings(cfg.Platform.Settings),
		r.CheckGiven(slices.Collect(maps.Keys(cfg.Platform.Secrets))))
	written := cfg.WrittenFor()
	if written == "" && err == nil { // it may be for any release, and fits this one
		return nil
	}
	if err != nil { // who has only changed the version has changed too little
		written = ""
	}
	for _, step := range r.Since(written) {
		for _, path := range slices.Sorted(slices.Values(step.From())) {
			if cfg.Has(path) {
				return outdated(r, step, path)
			}
		}
	}
	return err
}

// outdated is the fault of a configuration that has a setting of an older release.
func outdated(r *Release, step migrate.Step, path string) error {
	now := "is gone"
	if to := step.Move[path]; to != "" {
		now = "is now " + to
	}
	return &fault.Fault{
		Code: CodeOutdated, Class: fault.Usage, Op: "read the configuration for release " + r.Version + " of " + r.Name,
		Err: fmt.Errorf("it was written for an older release: since %s, %s %s", step.Version, path, now),
		Fix: "migrate it: " + MigrateCommand(r.Version),
	}
}

// MigrateCommand is the command that writes a configuration as the release of a version has it.
func MigrateCommand(version string) string {
	return "slipway config migrate --to " + fault.Quote(version)
}
