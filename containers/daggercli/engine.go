package daggercli

import (
	"path/filepath"

	"github.com/adrg/xdg"
)

// EngineConfig is an engine.json (Dagger v0.20.8) of an engine that keeps the cache volumes of
// deployments: its one policy collects everything else. Its limits may be changed.
//
// Preflight wants 10 GiB free for a first deployment of the default scale (config.ProfileOf). At
// the end of a session the engine makes room until 20 GB are free, of layers and never of volumes,
// so that a run that was refused for lack of space may succeed the next time. It is twice what is
// wanted because an engine counts as free what a file system reserves for root, 5 % with ext4, and
// preflight does not: with such a reserve, a disk of more than 180 GB needs a higher limit.
const EngineConfig = `{"gc": {"policies": [` + EnginePolicy + `]}}`

// EnginePolicy is that policy, and EngineFilter what leaves cache volumes out.
const (
	EnginePolicy = `{"filters": ["` + EngineFilter + `"], "reservedSpace": "5GB", "maxUsedSpace": "40GB", "minFreeSpace": "20GB"}`
	EngineFilter = "type!=exec.cachemount"
)

// EngineFile is the engine.json that the dagger CLI gives to an engine that it starts itself, in
// Docker for one.
func EngineFile() string { return filepath.Join(xdg.ConfigHome, "dagger", "engine.json") }
