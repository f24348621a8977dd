package main

// insideCommand is how start calls this program again, inside the namespaces
// of the engine. It is no command for people.
const insideCommand = "inside-engine-namespaces"

// setup is what the process inside needs to know; it reads it, as JSON, from its
// standard input.
type setup struct {
	Root    string   // folder: the engine's root, left as it is
	Config  string   // its engine.json; empty: that of the root
	SDK     string   // folder: the Go SDK's image
	Mount   string   // where to put the root together
	State   string   // what the engine keeps
	Runtime string   // holds the socket
	Network string   // name of the containers' network
	CIDR    string   // and its range
	Args    []string // of the engine
	Env     []string // of the engine, all of it
}
