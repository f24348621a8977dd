package hostile

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// traced are the system calls that a program needs to start another one, to reach a file by its
// name, or to reach anybody. io_uring does any of these unseen.
const traced = "%file,fork,vfork,clone,clone3,connect,bind,sendto,sendmsg,sendmmsg,io_uring_setup,ptrace"

// call is a system call that a program made.
type call struct {
	line   string
	name   string
	paths  []string // absolute, as named
	opened string   // what was opened in truth, links followed; empty: nothing was
	reads  bool     // it changes nothing
}

var (
	// ends is what is written of a thread that ended, or that its process took with it before it
	// made a call.
	ends     = regexp.MustCompile(`^(\+\+\+ |\?\?\?\(|syscall_0x[0-9a-f]+\(.*<detached \.\.\.>$)`)
	lineForm = regexp.MustCompile(`^(\w+)\((.*)$`)
	// pathForm is a file that a call names: the directory that it is relative to, and the name.
	pathForm = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)(?:<((?:[^>\\]|\\.)*)>)?, )?"((?:[^"\\]|\\.)*)"`)
	openForm = regexp.MustCompile(`\) += \d+<((?:[^>\\]|\\.)*)>`)
	readings = regexp.MustCompile(`^(l?stat|newfstatat|statx?|statfs|access|faccessat2?|readlink(at)?|l?getxattr|l?listxattr|chdir|getcwd|inotify_add_watch|name_to_handle_at)$`)
	writing  = regexp.MustCompile(`O_(WRONLY|RDWR|CREAT|TRUNC|TMPFILE)`)
)

// calls reads what strace wrote: a file for each thread, in which no call interrupts another.
func calls(t *testing.T, workdir, trace string) []call {
	t.Helper()
	files, err := filepath.Glob(trace + ".*")
	require.NoError(t, err)
	slices.SortFunc(files, func(a, b string) int { // the first thread first
		x, _ := strconv.Atoi(filepath.Ext(a)[1:])
		y, _ := strconv.Atoi(filepath.Ext(b)[1:])
		return x - y
	})
	var out []call
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !ends.MatchString(line) {
				out = append(out, parse(t, workdir, line))
			}
		}
	}
	return out
}

// parse reads a line of strace.
func parse(t *testing.T, workdir, line string) call {
	t.Helper()
	m := lineForm.FindStringSubmatch(line)
	require.NotNil(t, m, "strace wrote a line of another form: %s", line)
	c := call{line: line, name: m[1], reads: readings.MatchString(m[1])}
	if strings.HasPrefix(c.name, "open") || c.name == "creat" {
		c.reads = c.name != "creat" && !writing.MatchString(m[2])
		if o := openForm.FindStringSubmatch(line); o != nil {
			c.opened = unquote(t, o[1])
		}
	}
	if !strings.HasPrefix(m[2], `{`) && named(c.name) {
		found := pathForm.FindAllStringSubmatch(m[2], -1)
		switch {
		case strings.HasPrefix(c.name, "readlink"), strings.HasPrefix(c.name, "exec"): // the rest is an answer, or arguments
			found = found[:min(1, len(found))]
		case strings.HasPrefix(c.name, "symlink"): // the first one is what the link says
			found = found[min(1, len(found)):]
		}
		for _, f := range found {
			dir, name := unquote(t, f[1]), unquote(t, f[2])
			if dir == "" {
				dir = workdir
			}
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			c.paths = append(c.paths, filepath.Clean(name))
		}
	}
	return c
}

// named says whether the strings in a call are names of files.
func named(call string) bool {
	return !slices.Contains([]string{"fork", "vfork", "clone", "clone3", "connect", "bind", "sendto", "sendmsg", "sendmmsg", "io_uring_setup", "ptrace"}, call)
}

// unquote undoes the escapes of strace, which are those of C.
func unquote(t *testing.T, text string) string {
	t.Helper()
	if !strings.Contains(text, `\`) {
		return text
	}
	var out []byte
	for rest := text; rest != ""; {
		if octal := regexp.MustCompile(`^\\([0-7]{1,3})`).FindStringSubmatch(rest); octal != nil {
			n, err := strconv.ParseUint(octal[1], 8, 8)
			require.NoError(t, err)
			out, rest = append(out, byte(n)), rest[len(octal[0]):]
			continue
		}
		r, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		require.NoError(t, err, text)
		if multibyte {
			out = append(out, string(r)...)
		} else {
			out = append(out, byte(r))
		}
		rest = tail
	}
	return string(out)
}
