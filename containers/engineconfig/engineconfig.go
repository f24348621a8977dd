// Package engineconfig is the configuration of a Dagger engine that keeps the cache volumes
// of deployments. It is about the engine's file engine.json (Dagger v0.19.10); nothing here
// talks to an engine.
package engineconfig

import (
	"path/filepath"

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
const Text = `{"gc": {"policies": [{"filters": ["type!=exec.cachemount"], "reservedSpace": 5368709121, "maxUsedSpace": "40GB", "minFreeSpace": "5GB"}]}}`

// File is the engine.json that the dagger CLI gives to an engine that it starts itself, in
// Docker for one.
func File() string { return filepath.Join(xdg.ConfigHome, "dagger", "engine.json") }
