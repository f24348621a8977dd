//go:build !unix

package incontainer

import "os"

// exitCode is that of a process which has ended.
func exitCode(p *os.ProcessState) int { return p.ExitCode() }
