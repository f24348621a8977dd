package infrastructure

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeSpace is how many bytes are free on the volume that holds path.
func freeSpace(path string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, nil // the types differ between architectures
}

// netfilter tells whether the kernel filters packets: by the tables of iptables,
// or because it opens a netlink socket to nf_tables.
func netfilter(root string) bool {
	if _, err := os.Stat(filepath.Join(root, "proc/net/ip_tables_names")); err == nil {
		return true
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
