package hostile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// engine is the address that the environment names for the engine. Nothing listens there.
const engine = "127.0.0.1:9"

// The limits of a command that reads what is hostile.
const (
	deadline  = 30 * time.Second
	maxMemory = 1 << 20 // KiB
)

// The secrets of the user, which no command may print or write anywhere.
const (
	secretInFile = "hunter2-of-a-file"
	secretInEnv  = "hunter2-of-the-environment"
)

// sandbox is where one case is tried: a machine of a user in one folder.
//
//	work/     the working directory, with what is hostile and what the user has beside it
//	home/     the user's home
//	tmp/      for temporary files
//	out/      where commands write what the user asks for
//	bin/      programs that nobody asks for; PATH
//	secret    a file of the user's
type sandbox struct{ root string }

// programs are what a hostile input may want to start. The sandbox has one of each.
var programs = []string{
	"bash", "curl", "docker", "docker-credential-osxkeychain", "git", "helm", "kubectl", "kustomize", "op", "sh", "ssh", "terraform", "touch", "vault",
}

func newSandbox(t *testing.T) sandbox {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := sandbox{root}
	for _, dir := range []string{"work", "home", "tmp", "out", "bin"} {
		require.NoError(t, os.Mkdir(s.path(dir), 0o755))
	}
	for _, name := range programs {
		require.NoError(t, os.WriteFile(s.path("bin/"+name), []byte("#!/bin/sh\n: >"+s.path("tmp/ran")+"\n"), 0o755))
	}
	require.NoError(t, os.WriteFile(s.path("secret"), []byte(secretInFile+"\n"), 0o600))
	return s
}

func (s sandbox) path(name string) string { return filepath.Join(s.root, name) }

// fill replaces @SECRET@ in a text with the path of the user's file, and @ROOT@ with the path of the
// sandbox.
func (s sandbox) fill(text string) string {
	return strings.NewReplacer("@SECRET@", s.path("secret"), "@ROOT@", s.root).Replace(text)
}

// write puts a file into the working directory, filled in.
func (s sandbox) write(t *testing.T, name string, data []byte) {
	t.Helper()
	file := s.path("work/" + name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(s.fill(string(data))), 0o644))
}

// result is what came of a command.
type result struct {
	code           int
	stdout, stderr string
	memory         int64 // KiB
	calls          []call
}

// run runs a program in the sandbox under strace, in a network namespace of its own.
func (s sandbox) run(t *testing.T, program string, args ...string) result {
	t.Helper()
	for {
		// Now and then strace loses a thread that its process ends at the same time, and gives up.
		if r := s.once(t, program, args...); !gaveUp.MatchString(r.stderr) {
			return r
		}
	}
}

var gaveUp = regexp.MustCompile(`(?m)^\S*strace: ptrace\(`)

// once is one attempt of run.
func (s sandbox) once(t *testing.T, program string, args ...string) result {
	t.Helper()
	strace, err := exec.LookPath("strace")
	require.NoError(t, err, "the test needs strace: apt-get install strace")
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(ctx, strace, append([]string{
		"-ff", "-qq", "-y", "--seccomp-bpf", "-e", "signal=none", "-e", "trace=" + traced, "-o", trace, "--", program,
	}, args...)...)
	cmd.Dir = s.path("work")
	cmd.Env = []string{
		"PATH=" + s.path("bin"), "HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"), "USER=somebody", "SECRET_TOKEN=" + secretInEnv,
		"DAGGER_SESSION_PORT=" + strings.TrimPrefix(engine, "127.0.0.1:"), "DAGGER_SESSION_TOKEN=none",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	if os.Geteuid() != 0 { // a user may make one as root of a namespace of users
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	require.NoError(t, ctx.Err(), "slipway %s did not end within %s", strings.Join(args, " "), deadline)
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		require.NoError(t, err, "start strace in a network namespace: the test needs the right to make one (root, or kernel.unprivileged_userns_clone=1)")
	}
	r := result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), calls: calls(t, s.path("work"), trace)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = usage.Maxrss
	}
	require.NotEmpty(t, r.calls, "strace saw nothing, and may be forbidden here (ptrace): %s", r.stderr)
	require.True(t, slices.ContainsFunc(r.calls, func(c call) bool { return c.name == "execve" }), "strace saw %s start", program)
	return r
}
