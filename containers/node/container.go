package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// prepareContainer makes of an ordinary privileged container one that can run
// other containers. It may be called again in a container that is prepared.
// What the host does not allow and a node can live without is reported through logLine.
func prepareContainer(ctx context.Context, s settings, logLine func(string)) error {
	if os.Geteuid() != 0 {
		return errors.New("the node must run as root in a privileged container: start it with all root capabilities")
	}
	// Mounts that the kubelet makes must be seen by containers that share them.
	if err := unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("share the mounts (the container must be privileged): %w", err)
	}
	if err := unmountBelow(s.Data); err != nil {
		return err
	}
	// Sockets, pid files and network namespaces of an earlier start must not
	// outlive it.
	if err := mountTemp("/run"); err != nil {
		return err
	}
	for _, dir := range []string{"/run/containerd", "/run/netns", "/run/lock", runDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a run directory: %w", err)
		}
	}
	if err := prepareCgroups(); err != nil {
		return err
	}
	if err := prepareDevices(); err != nil {
		return err
	}
	setSysctls(procSys, logLine)
	if err := hideSysctls(procSys, filepath.Join(runDir, "sysctl")); err != nil {
		return err
	}
	return chooseIptables(ctx)
}

// mountTemp puts an empty tmpfs at dir unless there is one.
func mountTemp(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a tmpfs at %s: %w", dir, err)
	}
	return nil
}

// unmountBelow detaches every mount inside dir, innermost first.
func unmountBelow(dir string) error {
	// Asked again after each round, because mounts may be stacked.
	for range 10 {
		mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
			return !strings.HasPrefix(m.Mountpoint, strings.TrimSuffix(dir, "/")+"/"), false
		})
		if err != nil {
			return fmt.Errorf("list the mounts below %s: %w", dir, err)
		}
		if len(mounts) == 0 {
			return nil
		}
		for i := len(mounts) - 1; i >= 0; i-- {
			if err := unix.Unmount(mounts[i].Mountpoint, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("unmount %s: %w", mounts[i].Mountpoint, err)
			}
		}
	}
	return fmt.Errorf("unmount below %s: mounts keep appearing", dir)
}

// prepareCgroups lets controllers be delegated to pods. With cgroup v1 there is
// nothing to do. With v2 a group that delegates may hold no process itself, so
// those of the container move to a leaf. That is for a container with a view of
// its own only: in the host's view the groups belong to the host.
func prepareCgroups() error {
	const root = "/sys/fs/cgroup"
	controllers, err := os.ReadFile(root + "/cgroup.controllers")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the cgroup controllers: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return fmt.Errorf("read its own cgroup: %w", err)
	}
	// Only the root of the host's hierarchy has no type.
	if _, err := os.Stat(root + "/cgroup.type"); errors.Is(err, os.ErrNotExist) || !ownCgroupView(string(own)) {
		return nil
	}
	// Read-only in some containers. Where this is not allowed, the writes below
	// show whether it was needed.
	_ = unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND, "")
	leaf := filepath.Join(root, nodeName)
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return fmt.Errorf("make the node's cgroup: %w", err)
	}
	var last error
	for range 20 { // processes that are being started slip through
		procs, err := os.ReadFile(root + "/cgroup.procs")
		if err != nil {
			return fmt.Errorf("list the processes of the cgroup: %w", err)
		}
		for pid := range strings.FieldsSeq(string(procs)) {
			// It may have ended meanwhile.
			_ = os.WriteFile(leaf+"/cgroup.procs", []byte(pid), 0o644)
		}
		enable := "+" + strings.Join(strings.Fields(string(controllers)), " +")
		if last = os.WriteFile(root+"/cgroup.subtree_control", []byte(enable), 0o644); last == nil {
			return nil
		}
	}
	return fmt.Errorf("delegate the cgroup controllers: %w", last)
}

// ownCgroupView reports whether /proc/self/cgroup shows the container at the root of
// what it sees, or in the leaf that an earlier start made.
func ownCgroupView(own string) bool {
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path == "/" || path == "/"+nodeName
		}
	}
	return false
}

// prepareDevices adds /dev/kmsg, which the kubelet insists on.
func prepareDevices() error {
	if _, err := os.Stat("/dev/kmsg"); err == nil {
		return nil
	}
	if err := unix.Mknod("/dev/kmsg", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 11))); err == nil {
		return nil
	}
	if err := os.Symlink("/dev/null", "/dev/kmsg"); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make /dev/kmsg: %w", err)
	}
	return nil
}

// chooseIptables puts a variant of iptables that this kernel supports first on
// the PATH of everything the node starts.
func chooseIptables(ctx context.Context) error {
	bin := filepath.Join(runDir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("make a directory for links: %w", err)
	}
	// An image may set a PATH without the folders of root's programs.
	search := bin + ":" + os.Getenv("PATH") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if err := os.Setenv("PATH", search); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	var tried []string
	for _, variant := range []string{"nft", "legacy"} {
		path, err := exec.LookPath("iptables-" + variant)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		out, err := exec.CommandContext(ctx, path, "-w", "5", "-t", "nat", "-S", "POSTROUTING").CombinedOutput()
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s: %v: %s", path, err, bytes.TrimSpace(out)))
			continue
		}
		for _, name := range []string{"iptables", "ip6tables"} {
			for _, suffix := range []string{"", "-save", "-restore"} {
				target, err := exec.LookPath(name + "-" + variant + suffix)
				if err != nil {
					continue
				}
				link := filepath.Join(bin, name+suffix)
				_ = os.Remove(link)
				if err := os.Symlink(target, link); err != nil {
					return fmt.Errorf("link %s: %w", link, err)
				}
			}
		}
		return nil
	}
	return fmt.Errorf("find a working iptables: %s", strings.Join(tried, "; "))
}
