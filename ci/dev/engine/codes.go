package main

// The codes of this program's errors, besides debian.CodePackages.
const (
	// codeStore: the build store cannot be used.
	// Remedy: set SLIPWAY_CACHE to a folder with a short path that you may
	// write to.
	codeStore = "ENG-002"
	// codeBuild: the engine could not be built.
	// Remedy: read what the error says, then `make engine` again.
	codeBuild = "ENG-003"
	// codeMirror: the Debian mirror cannot be used.
	// Remedy: make the mirror reachable (`apt-get update`), then `make engine`
	// again.
	codeMirror = "ENG-004"
	// codeRoot: the engine must be started or stopped by root on Linux.
	// Remedy: `sudo -E make engine`, or start Docker.
	codeRoot = "ENG-005"
	// codeStart: the engine did not start.
	// Remedy: read the log that the error names, then `make engine` again.
	codeStart = "ENG-006"
	// codeStop: the engine could not be stopped.
	// Remedy: look whether its process still runs, and end it.
	codeStop = "ENG-007"
	// codeNone: no engine, or no dagger CLI, was found.
	// Remedy: `make engine`, then `eval "$(make -s engine-env)"`
	codeNone = "ENG-008"
	// codeVersion: an engine of another version runs.
	// Remedy: `make engine-stop engine`
	codeVersion = "ENG-009"
)
