package store

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mountsBelow lists the mount points at or below dir. Where the kernel does not
// list its mounts (it is not Linux) there are none.
func mountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	// What mountinfo does to blanks and backslashes in paths.
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		if len(fields) < 5 {
			continue
		}
		if at := unescape.Replace(fields[4]); at == dir || strings.HasPrefix(at, dir+"/") {
			found = append(found, at)
		}
	}
	return found, sc.Err()
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}
