package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/component-helpers/node/util/sysctl"
)

func TestSysctlsOfTheMachineAreOnlyRaised(t *testing.T) {
	root := t.TempDir()
	write := func(key, value string) {
		path := filepath.Join(root, key)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(value+"\n"), 0o644))
	}
	for key, value := range map[string]string{
		"fs/inotify/max_user_instances": "128", "fs/inotify/max_user_watches": "1048576",
		"vm/overcommit_memory": "0", "kernel/panic_on_oops": "0", "net/ipv4/ip_forward": "0",
	} {
		write(key, value)
	}
	var told []string
	setSysctls(root, func(line string) { told = append(told, line) })
	for key, want := range map[string]string{
		"fs/inotify/max_user_instances": "8192", "fs/inotify/max_user_watches": "1048576",
		"vm/overcommit_memory": "0", "kernel/panic_on_oops": "0", "net/ipv4/ip_forward": "1",
	} {
		got, err := os.ReadFile(filepath.Join(root, key))
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimSpace(string(got)), key)
	}
	require.Equal(t, []string{"raised fs.inotify.max_user_instances of the machine from 128 to 8192"}, told)
	setSysctls(root, func(line string) { told = append(told, line) })
	require.Len(t, told, 1, "it is once only that they are raised")
}

func TestTheKubeletWritesToFilesInPlaceOfTheMachine(t *testing.T) {
	machine := func() map[string]string {
		out := map[string]string{}
		for key := range kubeletSysctls() {
			text, err := os.ReadFile(filepath.Join(procSys, key))
			require.NoError(t, err)
			out[key] = strings.TrimSpace(string(text))
		}
		return out
	}
	if dir := os.Getenv("SLIPWAY_HIDDEN_SYSCTLS"); dir != "" { // in mounts of its own
		for range 2 {
			require.NoError(t, hideSysctls(procSys, dir))
		}
		for key, value := range kubeletSysctls() {
			require.Equal(t, strconv.Itoa(value), machine()[key], key)
			require.NoError(t, sysctl.New().SetSysctl(key, 7))
			require.NoError(t, unix.Unmount(filepath.Join(procSys, key), 0))
		}
		return
	}
	before := machine()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SLIPWAY_HIDDEN_SYSCTLS="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine allows no user namespaces")
	}
	require.NoError(t, err, string(out))
	require.Equal(t, before, machine())
}
