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

// setSysctls sets what forwarding needs, and raises what a node with many pods needs more of, on
// the machine; where the machine has more, it stays. A value that the host keeps read-only is told,
// not fatal: most hosts have it already. Provider local says beforehand which are the machine's.
func setSysctls(root string, logLine func(string)) {
	for _, v := range []struct {
		key  string
		want int
		more bool // a larger value will do as well
	}{
		{"net/ipv4/ip_forward", 1, false},
		{"net/ipv4/conf/all/rp_filter", 0, false},
		{"net/bridge/bridge-nf-call-iptables", 1, false},
		{"net/ipv4/conf/all/route_localnet", 0, false},
		{"net/netfilter/nf_conntrack_tcp_be_liberal", 1, false},
		{"fs/inotify/max_user_instances", 8192, true},
		{"fs/inotify/max_user_watches", 524288, true},
	} {
		path := filepath.Join(root, v.key)
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		old, err := strconv.Atoi(string(bytes.TrimSpace(text)))
		if err != nil || old == v.want || v.more && old > v.want {
			continue
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(v.want)), 0o644); err != nil {
			logLine(fmt.Sprintf("cannot set %s to %d, it stays %d: %v", dotted(v.key), v.want, old, err))
		} else if v.more {
			logLine(fmt.Sprintf("raised %s of the machine from %d to %d", dotted(v.key), old, v.want))
		}
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

func dotted(key string) string { return strings.ReplaceAll(key, "/", ".") }
