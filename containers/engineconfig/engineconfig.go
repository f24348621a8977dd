// Package engineconfig is the configuration of a Dagger engine that keeps the cache volumes
// of deployments. It is about the engine's file engine.json (Dagger v0.20.8); nothing here
// talks to an engine.
package engineconfig

import (
	"path/filepath"

	"github.com/adrg/xdg"
)

// Text is an engine.json with one policy, which collects everything but cache volumes. Its limits
// may be changed.
//
// Preflight wants 10 GiB free for a first deployment of the default scale (config.ProfileOf). At
// the end of a session the engine makes room until 20 GB are free, of layers and never of volumes,
// so that a run that was refused for lack of space may succeed the next time. It is twice what is
// wanted because an engine counts as free what a file system reserves for root, 5 % with ext4, and
// preflight does not: with such a reserve, a disk of more than 180 GB needs a higher limit.
const Text = `{"gc": {"policies": [` + Policy + `]}}`

// Policy is that policy, and Filter what leaves cache volumes out.
const (
	Policy = `{"filters": ["` + Filter + `"], "reservedSpace": "5GB", "maxUsedSpace": "40GB", "minFreeSpace": "20GB"}`
	Filter = "type!=exec.cachemount"
)

// File is the engine.json that the dagger CLI gives to an engine that it starts itself, in
// Docker for one.
func File() string { return filepath.Join(xdg.ConfigHome, "dagger", "engine.json") }
