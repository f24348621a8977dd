package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/component-helpers/node/util/sysctl"
)

// procSys is where the kernel's settings are. Those of net/ belong to the container's own
// network; all others are the machine's.
const procSys = "/proc/sys"

// setNetwork sets what forwarding needs. Values that the host keeps read-only are told, not
// fatal: most hosts have them already.
func setNetwork(root string, logLine func(string)) {
	for _, v := range []struct{ key, value string }{
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv4/conf/all/rp_filter", "0"},
		{"net/bridge/bridge-nf-call-iptables", "1"},
		{"net/ipv4/conf/all/route_localnet", "0"},
		{"net/netfilter/nf_conntrack_tcp_be_liberal", "1"},
	} {
		path := filepath.Join(root, v.key)
		old, err := os.ReadFile(path)
		if err != nil || string(bytes.TrimSpace(old)) == v.value {
			continue
		}
		if err := os.WriteFile(path, []byte(v.value), 0o644); err != nil {
			logLine(fmt.Sprintf("cannot set %s to %s, it stays %s: %v", dotted(v.key), v.value, bytes.TrimSpace(old), err))
		}
	}
}

// raiseSysctls raises what a node with many pods needs more of, on the machine, and says so.
// Where the machine has more, it stays. Provider local says beforehand which these are.
func raiseSysctls(root string, logLine func(string)) {
	for _, v := range []struct {
		key  string
		need int64
	}{
		{"fs/inotify/max_user_instances", 8192},
		{"fs/inotify/max_user_watches", 524288},
	} {
		path := filepath.Join(root, v.key)
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		old, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
		if err != nil || old >= v.need {
			continue
		}
		if err := os.WriteFile(path, strconv.AppendInt(nil, v.need, 10), 0o644); err != nil {
			logLine(fmt.Sprintf("cannot raise %s of the machine from %d to %d: %v", dotted(v.key), old, v.need, err))
			continue
		}
		logLine(fmt.Sprintf("raised %s of the machine from %d to %d", dotted(v.key), old, v.need))
	}
}

// hideSysctls puts files in dir with the values that the kubelet wants in the place of those
// of the machine that it would set: a kernel that panics when something in it fails, for
// instance. Only processes of the node itself see them; pods have a /proc of their own.
func hideSysctls(root, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of sysctls: %w", err)
	}
	for key, value := range kubeletSysctls() {
		path := filepath.Join(root, key)
		var at unix.Statfs_t
		if err := unix.Statfs(path, &at); errors.Is(err, fs.ErrNotExist) {
			continue // nor can the kubelet set it
		} else if err != nil {
			return fmt.Errorf("look at the sysctl %s: %w", dotted(key), err)
		}
		if at.Type != unix.PROC_SUPER_MAGIC {
			continue // hidden already
		}
		file := filepath.Join(dir, dotted(key))
		if err := os.WriteFile(file, strconv.AppendInt(nil, int64(value), 10), 0o644); err != nil {
			return fmt.Errorf("write the sysctl %s: %w", dotted(key), err)
		}
		if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide the sysctl %s of the machine: %w", dotted(key), err)
		}
	}
	return nil
}

// kubeletSysctls is what the kubelet sets unless it is so (setupKernelTunables of
// k8s.io/kubernetes v1.37.2, pkg/kubelet/cm/container_manager_linux.go).
func kubeletSysctls() map[string]int {
	return map[string]int{
		sysctl.VMOvercommitMemory: sysctl.VMOvercommitMemoryAlways,
		sysctl.VMPanicOnOOM:       sysctl.VMPanicOnOOMInvokeOOMKiller,
		sysctl.KernelPanic:        sysctl.KernelPanicRebootTimeout,
		sysctl.KernelPanicOnOops:  sysctl.KernelPanicOnOopsAlways,
		sysctl.RootMaxKeys:        sysctl.RootMaxKeysSetting,
		sysctl.RootMaxBytes:       sysctl.RootMaxBytesSetting,
	}
}

// dotted is the name of a key as people know it.
func dotted(key string) string { return strings.ReplaceAll(key, "/", ".") }
