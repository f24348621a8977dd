// Command harm does one thing that a program that only looks at something must not do: harm read
// FILE, for example. The tests of what judges such programs run it.
package main

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
