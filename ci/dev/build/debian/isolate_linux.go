package debian

import (
	"os"
	"syscall"
)

// isolated gives mmdebstrap a process group of its own and, as root, mounts of
// its own. As root it mounts parts of this machine, such as /dev/shm, into the
// root that it builds; if it is killed it cannot unmount them. In a namespace
// of their own they go with the last process, so that nobody who clears /tmp
// reaches the machine through them.
func isolated() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		attr.Unshareflags = syscall.CLONE_NEWNS // also makes all mounts private
	}
	return attr
}
