package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// fromRegistry is the conductor's container when images come from a registry:
// the toolchain by the digest that the lock has for the engine's platform.
func (m *Slipway) fromRegistry(ctx context.Context) (*conductor, error) {
	text, err := m.Lock.Contents(ctx)
	if err != nil {
		return nil, err
	}
	platform, err := dag.DefaultPlatform(ctx)
	if err != nil {
		return nil, err
	}
	ref, err := toolchain([]byte(text), m.Registry, string(platform))
	if err != nil {
		return nil, err
	}
	// The program says what is wrong with the other images; for this one, which
	// holds the program, the engine's words must do.
	base, err := dag.Container().From(ref).Sync(ctx)
	if err != nil {
		return nil, fmt.Errorf("take the image toolchain, %s: %w; see whether the registry answers and has it, log in with docker login, or push the bundle again: slipway bundle push DIR --to host/path", ref, err)
	}
	c := &conductor{
		ctr: base.
			WithMountedFile("/slipway/in/lock.json", m.Lock).
			WithDirectory("/slipway/out", dag.Directory()),
		args: []string{"--lock", "/slipway/in/lock.json"},
	}
	if m.Registry != "" {
		c.args = append(c.args, "--registry", m.Registry)
	}
	return c, nil
}

// toolchain is the reference by digest of the toolchain's image in a lock.
func toolchain(lock []byte, registry, platform string) (string, error) {
	var l struct {
		Location string `json:"location"`
		Images   []struct {
			Name     string `json:"name"`
			Registry map[string]struct {
				Digest string `json:"digest"`
			} `json:"registry"`
		} `json:"images"`
	}
	if err := json.Unmarshal(lock, &l); err != nil {
		return "", fmt.Errorf("LCK-003: read the lock: %s; write one with slipway bundle push", err.Error())
	}
	if registry == "" {
		registry = l.Location
	}
	if registry == "" {
		return "", fmt.Errorf("REG-010: the lock names no registry: give --registry host/path before the function")
	}
	for _, i := range l.Images {
		if digest := i.Registry[platform].Digest; i.Name == "toolchain" && digest != "" {
			return strings.TrimSuffix(registry, "/") + "/toolchain@" + digest, nil
		}
	}
	return "", fmt.Errorf("REG-006: the lock has no digest of the image toolchain for %s: push a bundle for that platform with slipway bundle push", platform)
}
