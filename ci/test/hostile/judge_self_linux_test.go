package hostile

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// harmful is a program that does one thing that a program that only looks at something must not do:
// harm read FILE, for example.
const harmful = `package main

import (
	"net"
	"os"
	"os/exec"
)

func main() {
	switch what, at := os.Args[1], os.Args[2]; what {
	case "read":
		_, _ = os.ReadFile(at)
	case "write":
		_ = os.WriteFile(at, nil, 0o600)
	case "remove":
		_ = os.Remove(at)
	case "rename":
		_ = os.Rename(at, at+".away")
	case "start":
		_ = exec.Command(at).Run()
	case "resolve":
		_, _ = net.LookupHost(at)
	case "listen":
		if l, err := net.Listen("tcp", at); err == nil {
			_ = l.Close()
		}
	case "tcp", "udp", "unix":
		if c, err := net.Dial(what, at); err == nil {
			_, _ = c.Write([]byte("x"))
		}
	}
}
`

// TestTheJudgeNotices what a program does that it may not do, and nothing else.
func TestTheJudgeNotices(t *testing.T) {
	s := newSandbox(t)
	s.write(t, "named/file", nil)
	s.write(t, "beside", nil)
	s.write(t, "named/strange \"name\"\n\u00e4", nil)
	for link, to := range map[string]string{"named/link": s.path("secret"), "named/folder": s.root, "named/own": "file"} {
		require.NoError(t, os.Symlink(to, s.path("work/"+link)))
	}
	r := rules{program: harm, reads: []string{"named"}}
	for _, c := range []struct{ does, noticed string }{
		{"do nothing", ""},
		{"read named/file", ""},
		{"read " + s.path("work/named/file"), ""},
		{"read named/not-there", ""},
		{"read named/own", ""},
		{"read named/strange \"name\"\n\u00e4", ""},
		{"write " + s.path("out/new"), ""},
		{"write " + s.path("tmp/new"), ""},
		{"read beside", "a file was reached"},
		{"read named/../beside", "a file was reached"},
		{"read " + s.path("secret"), "a file was reached"},
		{"read ../secret", "a file was reached"},
		{"read named/link", "a file was reached"},
		{"read named/folder/secret", "a file was reached"},
		{"read /etc/hostname", "a file was reached"},
		{"read /etc/not-there", "a file was reached"},
		{"read /proc/self/environ", "a file was reached"},
		{"write named/file", "a file was reached"},
		{"write named/new", "a file was reached"},
		{"remove named/not-there", "a file was reached"},
		{"rename named/file", "a file was reached"},
		{"write " + s.path("bin/git"), "a file was reached"},
		{"start " + s.path("bin/touch"), "a process was started\na program was started"},
		{"start /bin/not-there", "a process was started\na program was started"},
		{"tcp 127.0.0.1:9", "a connection was made"},
		{"udp 192.0.2.1:53", "a connection was made"},
		{"tcp [2001:db8::1]:80", "a connection was made"},
		{"unix " + s.path("work/socket"), "a connection was made"},
		{"unix @abstract", "a connection was made"},
		{"resolve canary.example", "a connection was made"},
		{"listen 127.0.0.1:0", "a connection was made"},
	} {
		got := s.run(t, harm, strings.SplitN(c.does, " ", 2)...)
		found := strings.Join(s.harm(r, got), "\n")
		if c.noticed == "" {
			require.Empty(t, found, c.does)
			continue
		}
		for part := range strings.Lines(c.noticed) {
			require.Contains(t, found, strings.TrimSpace(part)+": ", c.does)
		}
	}
	r.engine = true
	require.Empty(t, s.harm(r, s.run(t, harm, "tcp", engine)), "what the user agreed to")
	require.FileExists(t, s.path("tmp/ran"), "the program that was started ran")

	require.NotEmpty(t, s.harm(r, s.run(t, "/bin/sh", "-c", "exec true")), "another program")
}

// TestTheJudgeNoticesSecretsAndEscapes in what a command prints.
func TestTheJudgeNoticesSecretsAndEscapes(t *testing.T) {
	require.Empty(t, secretsIn([]byte("hunter2")))
	require.Len(t, secretsIn([]byte("a "+secretInFile+" and a "+secretInEnv)), 2)
	require.Empty(t, controls("a table\twith b\u00fccher \ufffd\n"))
	for _, text := range []string{"\x1b[31m", "\x9b", "\u009b", "\u202e", "\a", "\r", "\x00", "\u2066", "\x7f"} {
		require.Len(t, controls("x"+text), 1, "%q", text)
	}
}
