package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Where the node keeps what containerd reads.
const (
	containerdConfig = runDir + "/containerd.toml"
	cniConfigDir     = runDir + "/cni"
	registryDir      = runDir + "/registries"
	snapshotNative   = "native"
	snapshotOverlay  = "overlayfs"
)

// snapshotter is how images are unpacked in data: overlayfs, except where data
// itself is on an overlay, which does not stack.
func snapshotter(data string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(data, &fs); err != nil {
		return "", fmt.Errorf("look at the file system of %s: %w", data, err)
	}
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return snapshotNative, nil
	}
	return snapshotOverlay, nil
}

// ownHosts is for slipway.local: containerd asks the node, and nobody else.
const ownHosts = "server = \"http://" + ownRegistry + "\"\n\n" + defaultHosts

// defaultHosts is for every registry without a file of its own: containerd asks the node
// first, and the registry itself for what the node does not have.
const defaultHosts = "[host.\"http://" + ownRegistry + "\"]\n  capabilities = [\"pull\", \"resolve\"]\n"

// writeRegistries writes where containerd asks for images: of slipway.local, and of all others if
// all is set.
func writeRegistries(dir string, all bool) error {
	err := writeFile(filepath.Join(dir, registryHost, "hosts.toml"), []byte(ownHosts), 0o644)
	if err == nil && all {
		err = writeFile(filepath.Join(dir, "_default", "hosts.toml"), []byte(defaultHosts), 0o644)
	}
	return err
}

// writeContainerdConfig writes what containerd and its plugins read and removes
// what a kill left half done.
func writeContainerdConfig(s settings, mtu int) error {
	if err := os.MkdirAll(s.file("containerd"), 0o711); err != nil {
		return fmt.Errorf("make containerd's directory: %w", err)
	}
	kind, err := snapshotter(s.Data)
	if err != nil {
		return err
	}
	// Unfinished downloads and temporary mounts of an earlier start.
	for _, dir := range []string{"containerd/tmpmounts", "containerd/io.containerd.content.v1.content/ingest"} {
		if err := os.RemoveAll(s.file(dir)); err != nil {
			return fmt.Errorf("clean %s: %w", s.file(dir), err)
		}
	}
	if err := writeFile(containerdConfig, []byte(s.render("containerd.toml", map[string]any{"snapshotter": kind})), 0o644); err != nil {
		return err
	}
	// Each pod has its own link to the node, which routes. Unlike a bridge, this needs no bridge
	// netfilter module on the host for Services to work between pods. Leases live in a tmpfs,
	// because no pod network survives the container.
	network := s.render("network.conflist", map[string]any{"mtu": mtu})
	if err := writeFile(filepath.Join(cniConfigDir, "10-slipway.conflist"), []byte(network), 0o644); err != nil {
		return err
	}
	return writeRegistries(registryDir, s.OwnNames)
}
