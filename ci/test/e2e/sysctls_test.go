package e2e

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// procSys is where the sysctls of this machine are.
const procSys = "/proc/sys"

// changing are the sysctls that count, and those of interfaces, which come and go.
var changing = regexp.MustCompile(`^(fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota/.*)|kernel/(ns_last_pid|pty/nr|random/.*|perf_event_max_sample_rate)|net/netfilter/nf_conntrack_count|net/ipv[46]/(conf|neigh)/.*|vm/stat_refresh)$`)

// readSysctls reads those that only somebody changes.
func readSysctls(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(procSys, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		key := strings.TrimPrefix(path, procSys+"/")
		if changing.MatchString(key) {
			return nil
		}
		if text, err := os.ReadFile(path); err == nil { // some can only be written
			all[key] = strings.TrimSpace(string(text))
		}
		return nil
	}))
	require.Greater(t, len(all), 200)
	return all
}

// sysctlsOnlyRaised gives this machine values that an install must leave, and one that it
// raises. What it returns asserts that nothing else has changed. The test puts back what it
// found.
func sysctlsOnlyRaised(t *testing.T) func(*testing.T) {
	t.Helper()
	const raised = "fs/inotify/max_user_instances"
	for key, value := range map[string]string{
		raised:                        "4096",
		"fs/inotify/max_user_watches": "1048576", // more than a node needs
		"vm/overcommit_memory":        "0",
		"kernel/panic":                "1",
		"kernel/panic_on_oops":        "0",
		"kernel/keys/root_maxkeys":    "1000001",
		"kernel/keys/root_maxbytes":   "25000001",
	} {
		file := filepath.Join(procSys, key)
		found, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(value), 0o644))
		t.Cleanup(func() {
			if err := os.WriteFile(file, found, 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	before := readSysctls(t)
	return func(t *testing.T) {
		after := readSysctls(t)
		require.Equal(t, "8192", after[raised])
		for _, key := range []string{raised, "user/max_inotify_instances"} { // one value, by two names
			delete(before, key)
		}
		maps.DeleteFunc(after, func(key, _ string) bool { _, was := before[key]; return !was }) // of modules that were loaded
		maps.DeleteFunc(before, func(key, _ string) bool { _, is := after[key]; return !is })
		require.Equal(t, before, after)
	}
}
