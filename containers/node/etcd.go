package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// etcdSeries is the series of the etcd in the image. The node starts on data of this series only:
// etcd reads at most the series before its own, and no Slipway had 3.6.
const etcdSeries = "3.7"

// ownEtcd makes the folder of etcd's data, and marks it. It fails if the data is of another series
// of etcd, which could panic over it.
func ownEtcd(dir string) error {
	mark := filepath.Join(dir, "series")
	text, err := os.ReadFile(mark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which etcd made the cluster's data: %w", err)
	}
	made := strings.TrimSpace(string(text))
	if made == "" {
		if _, err := os.Lstat(filepath.Join(dir, "member")); err == nil {
			made = "3.4" // Debian's, the last that left no mark
		}
	}
	if made != "" && made != etcdSeries {
		return fmt.Errorf("etcd %s made the data of this cluster, and etcd %s cannot read it", made, etcdSeries)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of etcd: %w", err)
	}
	return writeFile(mark, []byte(etcdSeries+"\n"), 0o600)
}
