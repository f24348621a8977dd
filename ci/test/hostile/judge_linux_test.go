package hostile

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// rules are what a command may do.
type rules struct {
	program string   // which may start itself
	reads   []string // what the user named, below the working directory
	writes  []string // the same, to be written
	engine  bool     // it may ask the engine
	broken  bool     // what it works on may be broken in a way that has no code
	raw     bool     // its standard output is for programs, and passed on as it is
}

// machine is what each Go program, and Slipway with it, reads of a machine.
var machine = regexp.MustCompile(`^(` + strings.Join([]string{
	`/sys/kernel/mm/transparent_hugepage/hpage_pmd_size`, // the runtime
	`/proc/(self|\d+)/(cgroup|mountinfo)`,                // how many processors a container has
	`/sys/fs/cgroup/(\S+/)?cpu\.(max|cfs_quota_us|cfs_period_us)`,
	`/etc/localtime`, `/usr/share/zoneinfo/\S+`, // the time zone
	`/proc/self/exe`,
}, "|") + `)$`)

// caller is what is read of a machine for the engine: who asks it, and which one is at hand.
var caller = regexp.MustCompile(`^/etc/(passwd|machine-id)$`)

// harm is what a command did that it may not do.
func (s sandbox) harm(r rules, got result) []string {
	var out []string
	say := func(what string, c call) { out = append(out, what+": "+c.line) }
	for _, c := range got.calls {
		if strings.HasPrefix(c.name, "syscall_0xffff") { // no call of the kernel: a thread that ended while it was looked at
			continue
		}
		switch c.name {
		case "execve", "execveat":
			if !slices.Equal(c.paths, []string{r.program}) {
				say("a program was started", c)
			}
			continue
		case "fork", "vfork", "clone", "clone3":
			if !strings.Contains(c.line, "CLONE_THREAD") {
				say("a process was started", c)
			}
			continue
		case "io_uring_setup", "ptrace":
			say("a call that hides others", c)
			continue
		case "connect", "bind", "sendto", "sendmsg", "sendmmsg":
			if at := address(c.line); at != "" && !(r.engine && c.name == "connect" && at == engine) {
				say("a connection was made", c)
			}
			continue
		}
		paths := c.paths
		if c.opened != "" {
			paths = append(slices.Clone(paths), c.opened)
		}
		if len(paths) == 0 {
			say("a call that names no file", c)
		}
		for _, path := range paths {
			if !s.allowed(r, c, path) {
				say("a file was reached", c)
				break
			}
		}
	}
	return out
}

var addressForm = regexp.MustCompile(`sa_family=(\w+)(?:, sin6?_port=htons\((\d+)\))?(?:, sin_addr=inet_addr\("([^"]*)"\))?(.*)`)

// address is where a call goes to; empty: it names none.
func address(line string) string {
	m := addressForm.FindStringSubmatch(line)
	switch {
	case m == nil:
		return ""
	case m[1] == "AF_INET":
		return m[3] + ":" + m[2]
	}
	return m[1] + m[4]
}

// allowed says whether a call may name a file.
func (s sandbox) allowed(r rules, c call, path string) bool {
	below := func(dirs ...string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
	}
	work := func(names []string) []string {
		var out []string
		for _, name := range names {
			if !filepath.IsAbs(name) {
				name = filepath.Join(s.path("work"), name)
			}
			out = append(out, name)
		}
		return out
	}
	if below(s.path("home"), s.path("tmp"), s.path("out")) || below(work(r.writes)...) {
		return true
	}
	if !c.reads {
		return false
	}
	if below(work(r.reads)...) || path == r.program || machine.MatchString(path) || r.engine && caller.MatchString(path) {
		return true
	}
	// Whether it is there may be asked of what leads to these, and of a program on PATH.
	above := func(dir string) bool { return strings.HasPrefix(dir, strings.TrimSuffix(path, "/")+"/") }
	return c.opened == "" && !strings.HasPrefix(c.name, "open") && (below(s.path("bin")) || above(s.root+"/") || slices.ContainsFunc(work(slices.Concat(r.reads, r.writes)), above))
}

// judge fails the test if a command did what it may not do, told or kept a secret, or wrote to
// the terminal what does something there.
func (s sandbox) judge(t *testing.T, r rules, got result) {
	t.Helper()
	if harm := s.harm(r, got); len(harm) > 0 {
		t.Errorf("%s\n%s", strings.Join(harm, "\n"), got.stderr)
	}
	require.NotContains(t, got.stderr, "goroutine ", "it crashed")
	require.True(t, got.code > 1 || got.code == 0 || r.broken && got.code == 1, "exit code %d is a bug: %s", got.code, got.stderr)
	require.Less(t, got.memory, int64(maxMemory), "KiB of memory")
	for name, text := range map[string]string{"standard output": got.stdout, "standard error": got.stderr} {
		require.Empty(t, secretsIn([]byte(text)), name)
		if !r.raw || name == "standard error" {
			require.Empty(t, controls(text), "%s: %q", name, text)
		}
	}
	for _, dir := range []string{"home", "tmp", "out"} {
		require.NoError(t, filepath.WalkDir(s.path(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			require.Empty(t, secretsIn(data), path)
			if dir == "out" && slices.Contains([]string{".txt", ".md", ".xml", ".html"}, filepath.Ext(path)) { // others are for programs
				found := controls(string(data))
				require.Empty(t, found[:min(5, len(found))], path)
			}
			return err
		}))
	}
	require.NoFileExists(t, s.path("tmp/ran"), "a program ran")
}

func secretsIn(data []byte) (found []string) {
	for _, secret := range []string{secretInFile, secretInEnv} {
		if bytes.Contains(data, []byte(secret)) {
			found = append(found, secret)
		}
	}
	return found
}

// controls are the characters of a text that do something to a terminal.
func controls(text string) (found []string) {
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError && size == 1) {
			found = append(found, fmt.Sprintf("%U at %d", r, i))
		}
	}
	return found
}
