// Package distconsts holds the paths and image names that Dagger's engine and
// CLI are compiled with. The Go module proxy does not serve Dagger's own module
// of this name; the values that matter to a running engine describe the root
// file system that ci/dev/engine lays out.
package distconsts

// Where the engine listens and what the CLI calls its container.
const (
	EngineContainerName   = "dagger-engine.dev"
	DefaultEngineSockAddr = "unix:///run/dagger/engine.sock"
)

// Paths inside the engine's root.
const (
	RuncPath                         = "/usr/local/bin/runc"
	DaggerInitPath                   = "/usr/local/bin/dagger-init"
	EngineDefaultStateDir            = "/var/lib/dagger"
	EngineContainerBuiltinContentDir = "/usr/local/share/dagger/content"
	EngineCustomCACertsDir           = "/usr/local/share/ca-certificates"
)

// Environment variables that name the manifest of each built-in SDK image.
const (
	GoSDKManifestDigestEnvName         = "DAGGER_GO_SDK_MANIFEST_DIGEST"
	PythonSDKManifestDigestEnvName     = "DAGGER_PYTHON_SDK_MANIFEST_DIGEST"
	TypescriptSDKManifestDigestEnvName = "DAGGER_TYPESCRIPT_SDK_MANIFEST_DIGEST"
)

// OCIVersionAnnotation is the image annotation that carries a version.
const OCIVersionAnnotation = "org.opencontainers.image.version"

// Images that Dagger falls back to where a caller names none.
const (
	AlpineVersion  = "3.22.1"
	AlpineImage    = "alpine:" + AlpineVersion
	GolangVersion  = "1.26"
	GolangImage    = "golang:" + GolangVersion + "-alpine"
	BusyboxVersion = "1.37.0"
	BusyboxImage   = "busybox:" + BusyboxVersion
)
