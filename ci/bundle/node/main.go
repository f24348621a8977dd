package main

import "os"

func main() {
	if c, ok := components()[os.Args[1]]; ok {
		os.Exit(runComponent(c, os.Args[2:]))
	}
}
