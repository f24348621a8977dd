package main

// The codes of this program's errors, besides debian.CodeBuild.
const (
	// codeRoot: the engine must be started or stopped by root on Linux.
	codeRoot = "ENG-005"
	// codeStart: the engine did not start, has another version, or could not be stopped.
	codeStart = "ENG-006"
	// codeNone: no engine, or no dagger CLI, was found.
	codeNone = "ENG-008"
)
