package main

// The codes of this program's errors, besides debian.CodePackages.
const (
	// codeStore: the build store cannot be used.
	codeStore = "ENG-002"
	// codeBuild: the engine could not be built.
	codeBuild = "ENG-003"
	// codeMirror: the Debian mirror cannot be used.
	codeMirror = "ENG-004"
	// codeRoot: the engine must be started or stopped by root on Linux.
	codeRoot = "ENG-005"
	// codeStart: the engine did not start.
	codeStart = "ENG-006"
	// codeStop: the engine could not be stopped.
	codeStop = "ENG-007"
	// codeNone: no engine, or no dagger CLI, was found.
	codeNone = "ENG-008"
	// codeVersion: an engine of another version runs.
	codeVersion = "ENG-009"
	// codeImage: the image of the engine cannot be pulled, built or pushed.
	codeImage = "ENG-012"
)
