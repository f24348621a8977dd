package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slipway-sh/slipway/fault"
)

// target is an architecture that bundles are built for, by what GNU and QEMU call it.
type target string

// targets are those that there are bundles for, by GOARCH.
func targets() map[string]target { return map[string]target{"amd64": "x86_64", "arm64": "aarch64"} }

// compiler is Debian's C compiler that builds for it on another architecture.
func (t target) compiler() string { return string(t) + "-linux-gnu-gcc" }

// emulator is the program of Debian's qemu-user-static that runs its programs.
func (t target) emulator() string { return "qemu-" + string(t) + "-static" }

// emulate has the kernel run its programs under QEMU, as Debian's package does where systemd
// starts the machine: packages run scripts of their own when they are installed. The kernel
// opens the emulator now, so that no root needs to have it. It lasts until the machine is
// started again. root is "/". It fails with codeMachine.
func (t target) emulate(ctx context.Context, root string, say func(string)) error {
	name, formats := "qemu-"+string(t), filepath.Join(root, "proc/sys/fs/binfmt_misc")
	refuse := func(err error) error {
		return &fault.Fault{
			Class: fault.Preflight, Code: codeMachine, Op: "run programs of " + string(t) + " on this machine", Err: err,
			Fix: "build the bundle on a machine of that architecture, or on one whose root may mount binfmt_misc",
		}
	}
	if _, err := os.Stat(filepath.Join(formats, name)); err == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(formats, "register")); err != nil {
		if output, err := exec.CommandContext(ctx, "mount", "-t", "binfmt_misc", "binfmt_misc", formats).CombinedOutput(); err != nil {
			return refuse(fmt.Errorf("mount binfmt_misc: %w: %s", err, bytes.TrimSpace(output)))
		}
	}
	say("having the kernel run programs of " + string(t) + " under QEMU")
	text, err := os.ReadFile(filepath.Join(root, "usr/lib/binfmt.d", name+".conf"))
	if err == nil {
		err = os.WriteFile(filepath.Join(formats, "register"), bytes.TrimSpace(text), 0o200)
	}
	if err != nil {
		return refuse(fmt.Errorf("register %s: %w", name, err))
	}
	return nil
}
