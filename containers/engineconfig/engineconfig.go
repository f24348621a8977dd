// Package engineconfig is the configuration of a Dagger engine that keeps the cache volumes
// of deployments. It is about the engine's file engine.json (Dagger v0.20.8); nothing here
// talks to an engine.
package engineconfig

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"
)

// Own is the name of an engine of make engine with the policy that this gives it, which
// collects no cache volume either.
const Own = "slipway"

// Reserved is the reserved space, in bytes, of the policy in Text: 5 GiB and one byte. An
// engine tells the limits of its last policy and not its filters; that odd byte is what the
// policy is recognised by.
const Reserved = 5<<30 + 1

// Text is an engine.json with one policy, which collects everything but cache volumes. Limits
// other than reservedSpace may be changed.
//
// Preflight wants 10 GiB free for a first deployment of the default scale (config.ProfileOf). At
// the end of a session the engine makes room until 20 GB are free, of layers and never of volumes,
// so that a run that was refused for lack of space may succeed the next time. It is twice what is
// wanted because an engine counts as free what a file system reserves for root, 5 % with ext4, and
// preflight does not: with such a reserve, a disk of more than 180 GB needs a higher limit.
const Text = `{"gc": {"policies": [` + Policy + `]}}`

// Policy is that policy.
const Policy = `{"filters": ["type!=exec.cachemount"], "reservedSpace": 5368709121, "maxUsedSpace": "40GB", "minFreeSpace": "20GB"}`

// Keeps reports whether an engine with an engine.json is known to keep cache volumes: each of its
// policies leaves them out, and the last one is recognised.
func Keeps(text []byte) bool {
	var config struct {
		GC struct {
			Policies []struct {
				Filters       []string `json:"filters"`
				ReservedSpace any      `json:"reservedSpace"`
			} `json:"policies"`
		} `json:"gc"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return false
	}
	recognised := false
	for _, p := range config.GC.Policies {
		if len(p.Filters) == 0 || slices.ContainsFunc(p.Filters, selects) { // without one it is for everything
			return false
		}
		recognised = p.ReservedSpace == float64(Reserved)
	}
	return recognised
}

// selects reports whether a filter may select cache volumes. It is one of containerd's: what is
// between commas has to hold together.
func selects(filter string) bool {
	return !slices.ContainsFunc(strings.Split(filter, ","), func(part string) bool {
		is, only := strings.CutPrefix(part, "type==")
		return part == "type!=exec.cachemount" || only && is != "exec.cachemount"
	})
}

// File is the engine.json that the dagger CLI gives to an engine that it starts itself, in
// Docker for one.
func File() string { return filepath.Join(xdg.ConfigHome, "dagger", "engine.json") }
