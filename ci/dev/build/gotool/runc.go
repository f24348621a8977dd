package gotool

import "path/filepath"

// Runc is the name of the program that is built for the node of a bundle, and for the engine: Debian's
// has known ways out of a container.
const Runc = "runc"

// RuncLibrary is the Debian package with which it is linked: headers, and the library itself, which
// whoever runs it needs.
const RuncLibrary = "libseccomp-dev"

// BuildRunc builds runc in a checkout, with the library in the folder root, which was made from what
// has the digest library; machine is the architecture as C compilers call it ("x86_64").
func BuildRunc(checkout, root, library, machine string) Command {
	module := filepath.Join(checkout, "ci/dev/bundle/tools/runc")
	return Command{
		Name: Runc, Module: module, Package: "github.com/opencontainers/runc",
		CGO: true, Tags: []string{"seccomp"}, LDFlags: []string{"-w"},
		Linked: library,
		Env:    []string{"PKG_CONFIG=" + filepath.Join(module, "pkg-config"), "SECCOMP=" + root, "SECCOMP_ARCH=" + machine},
	}
}
