package main

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

// paths are the places of one engine. All of it lies below the build store, so
// that two stores have two engines.
type paths struct {
	dir      string // of the engine
	pid      string // the record of the running engine
	log      string
	state    string // what the engine keeps: layers and cache volumes
	runtime  string // holds the socket; bind-mounted into the engine's root
	mount    string // where the engine's root is put together, in its own namespace
	socket   string
	inDocker string // is there while an engine that was started from this store is in Docker
	network  string // name of the containers' network, at most 10 bytes
}

// maxSocket is what the kernel takes as the path of a socket.
const maxSocket = 107

func pathsOf(cache string) paths {
	dir := filepath.Join(cache, "engine")
	sum := sha256.Sum256([]byte(cache))
	runtime := filepath.Join(dir, "run")
	return paths{
		dir:      dir,
		pid:      filepath.Join(dir, "engine.pid"),
		log:      filepath.Join(dir, "engine.log"),
		state:    filepath.Join(dir, "state"),
		runtime:  runtime,
		mount:    filepath.Join(dir, "root"),
		inDocker: filepath.Join(dir, "docker"),
		socket:   filepath.Join(runtime, "engine.sock"),
		network:  "slip" + hex.EncodeToString(sum[:3]),
	}
}

func (p paths) host() string { return "unix://" + p.socket }
