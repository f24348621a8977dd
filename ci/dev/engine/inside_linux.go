package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// inside is the first process of the engine's namespaces: it puts the engine's
// root together, moves into it, runs the engine and ends as it ends. When this
// process dies, the kernel ends every process of the namespace and takes the
// mounts down: nothing is left behind.
func inside() int {
	var s setup
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		fmt.Fprintln(os.Stderr, "read the engine's setup:", err)
		return 1
	}
	if err := leaveCgroups(); err != nil {
		fmt.Fprintln(os.Stderr, "leave the caller's control groups:", err) // it works without
	}
	if err := assemble(s); err != nil {
		fmt.Fprintln(os.Stderr, "put the engine's root together:", err)
		return 1
	}
	if err := clearTraces(s.Network, s.CIDR); err != nil {
		fmt.Fprintln(os.Stderr, "clear what an earlier engine left:", err) // it works with them
	}
	if err := closeNetwork(s.Network); err != nil {
		fmt.Fprintln(os.Stderr, "keep others out of the containers' network:", err)
		return 1
	}
	status, err := supervise(s)
	if err := clearTraces(s.Network, s.CIDR); err != nil {
		fmt.Fprintln(os.Stderr, "clear what the engine left:", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run the engine:", err)
		return 1
	}
	return status
}

// leaveCgroups moves this process to the root of each control group hierarchy,
// out of the session of whoever called start: neither its limits nor its end
// are the engine's.
func leaveCgroups() error {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[2] == "/" {
			continue
		}
		name := strings.TrimPrefix(f[1], "name=")
		for _, at := range []string{filepath.Join("/sys/fs/cgroup", name), "/sys/fs/cgroup/unified"} {
			procs := filepath.Join(at, "cgroup.procs")
			if _, err := os.Stat(procs); err != nil {
				continue
			}
			// "0" is the process that writes, whatever its id is outside.
			errs = append(errs, os.WriteFile(procs, []byte("0"), 0))
			break
		}
	}
	return errors.Join(errs...)
}

// assemble mounts the engine's root and makes it this process's root.
func assemble(s setup) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", s.Mount, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	// Relative paths: a cache folder may hold characters that mean something in
	// mount options.
	if err := os.Chdir(s.Mount); err != nil {
		return err
	}
	for _, d := range []string{"lower", "upper", "work", "root"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := bind(s.Root, "lower", unix.MS_RDONLY); err != nil {
		return err
	}
	if err := unix.Mount("overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work"); err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	for _, m := range []struct {
		at, kind, options string
		flags             uintptr
	}{
		{"proc", "proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"run", "tmpfs", "mode=0755", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmp", "tmpfs", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.kind, filepath.Join("root", m.at), m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount /%s: %w", m.at, err)
		}
	}
	for _, b := range []struct {
		from, at string
		flags    uintptr
		optional bool
	}{
		{"/sys", "sys", unix.MS_REC, false},
		{"/dev", "dev", unix.MS_REC, false},
		{"/lib/modules", "lib/modules", unix.MS_RDONLY, true},
		{s.State, stateDir, 0, false},
		{s.Runtime, runDir, 0, false},
		{s.SDK, contentDir, unix.MS_RDONLY, false},
	} {
		if _, err := os.Stat(b.from); b.optional && err != nil {
			continue
		}
		if err := bind(b.from, filepath.Join("root", b.at), b.flags); err != nil {
			return err
		}
	}
	if err := writeEtc("/", "root", s.Config); err != nil {
		return err
	}
	if err := os.Mkdir("root/.outside", 0o700); err != nil {
		return err
	}
	if err := os.Chdir("root"); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", ".outside"); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := os.Setenv("PATH", enginePath); err != nil {
		return err
	}
	if err := unix.Unmount("/.outside", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the machine's root: %w", err)
	}
	return os.Remove("/.outside")
}

func bind(from, to string, flags uintptr) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|flags&unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	if flags&unix.MS_RDONLY != 0 {
		if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("bind %s read-only: %w", from, err)
		}
	}
	return nil
}

// writeEtc copies what the engine must know about the machine: name servers, and the authorities
// that an administrator added, which the engine trusts and makes its containers trust. It also
// writes the engine's configuration, if that is not the root's. The engine mounts over its
// resolv.conf, so it gets one of its own.
func writeEtc(machine, root, config string) error {
	files, err := filepath.Glob(filepath.Join(machine, certsDir, "*.crt"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(machine, "etc/resolv.conf"), filepath.Join(machine, "etc/hosts")) {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, strings.TrimPrefix(file, machine)), b, 0o644); err != nil {
			return err
		}
	}
	if config == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(root, configFile), []byte(config), 0o644)
}

// supervise runs the engine, passes signals on to it and collects every process
// of the namespace that has ended.
func supervise(s setup) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	engine, err := os.StartProcess(s.Args[0], s.Args, &os.ProcAttr{
		Dir:   "/",
		Env:   s.Env,
		Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys:   &unix.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, err
	}
	go func() {
		for sig := range signals {
			if n, ok := sig.(unix.Signal); ok {
				_ = unix.Kill(engine.Pid, n) // it may have ended
			}
		}
	}()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for processes: %w", err)
		case pid == engine.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == engine.Pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
