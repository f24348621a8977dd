// Package runc says how runc is built: for the node of a bundle, and for the engine. Debian's has
// known ways out of a container.
package runc

import (
	"path/filepath"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
)

// Name is the name of the program.
const Name = "runc"

// Library is the Debian package with which it is linked: headers, and the library itself, which
// whoever runs it needs.
const Library = "libseccomp-dev"

// Command builds it in a checkout, with the library in the folder root, which was made from what
// has the digest library; machine is the architecture as C compilers call it ("x86_64").
func Command(checkout, root, library, machine string) gotool.Command {
	module := filepath.Join(checkout, "ci/dev/bundle/tools/runc")
	return gotool.Command{
		Name: Name, Module: module, Package: "github.com/opencontainers/runc",
		CGO: true, Tags: []string{"seccomp"}, LDFlags: []string{"-w"},
		Linked: library,
		Env:    []string{"PKG_CONFIG=" + filepath.Join(module, "pkg-config"), "SECCOMP=" + root, "SECCOMP_ARCH=" + machine},
	}
}
