package infrastructure

import "golang.org/x/sys/unix"

// freeSpace is how many bytes are free on the volume that holds path.
func freeSpace(path string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, nil // the types differ between architectures
}
