package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// conductor is a container in which Slipway's program drives this session.
//
// The program runs as a nested client, not inside this module's own process:
// Dagger gives every module cache volumes of its own, and a deployment must be
// the same one for `dagger call` and for the command line tool (see
// docs/decisions/0003-nested-conductor.md).
type conductor struct {
	ctr  *dagger.Container
	args []string // flags that every command gets
}

// conductor prepares the container: objects of this session reach the nested
// client by their ids.
func (m *Slipway) conductor(ctx context.Context, config *dagger.File, platform *dagger.Directory, name string) (*conductor, error) {
	c, err := m.container(ctx)
	if err != nil {
		return nil, err
	}
	if platform != nil {
		id, err := platform.ID(ctx)
		if err != nil {
			return nil, err
		}
		c.ctr = c.ctr.WithNewFile("/slipway/in/platform.id", string(id))
		c.args = append(c.args, "--platform-id", "/slipway/in/platform.id")
	}
	if config != nil {
		c.ctr = c.ctr.WithMountedFile("/slipway/in/config.yaml", config)
		c.args = append(c.args, "--config", "/slipway/in/config.yaml")
	}
	if name != "" {
		c.args = append(c.args, "--name", name)
	}
	return c, nil
}

// container is the conductor's container, from the registry or the bundle, with
// the flags that say which.
func (m *Slipway) container(ctx context.Context) (*conductor, error) {
	if m.Lock != nil {
		return m.fromRegistry(ctx)
	}
	if m.Bundle == nil {
		return nil, errors.New("BUN-006: neither a bundle nor a lock was given: give one before the function (dagger call --bundle DIR install, or dagger call --lock slipway.lock.json install), or put BUNDLE=DIR into .env (make bundle does both the building and the writing)")
	}
	if m.Registry != "" {
		return nil, errors.New("--registry goes with --lock FILE, which slipway bundle push writes")
	}
	program, err := program(ctx, m.Bundle)
	if err != nil {
		return nil, err
	}
	id, err := m.Bundle.ID(ctx)
	if err != nil {
		return nil, err
	}
	return &conductor{
		ctr: dag.Container().
			Import(m.Bundle.File("images/toolchain.tar")).
			WithFile("/usr/local/bin/slipway", program, dagger.ContainerWithFileOpts{Permissions: 0o755}).
			WithNewFile("/slipway/in/bundle.id", string(id)).
			WithDirectory("/slipway/out", dag.Directory()),
		args: []string{"--bundle-id", "/slipway/in/bundle.id"},
	}, nil
}

// exec runs one command, uncached.
func (c *conductor) exec(args ...string) *dagger.Container {
	return c.ctr.
		WithEnvVariable("SLIPWAY_NONCE", rand.Text()).
		WithExec(append(append([]string{"slipway"}, args...), c.args...),
			dagger.ContainerWithExecOpts{ExperimentalPrivilegedNesting: true})
}

// stdout runs one command and returns what it prints. Its error is the exec's:
// the dagger CLI then exits with the command's own exit code.
func (c *conductor) stdout(ctx context.Context, args ...string) (string, error) {
	return c.exec(args...).Stdout(ctx)
}

// program is Slipway's own program out of the bundle, compared with the index
// before it is run; it compares the rest.
func program(ctx context.Context, bundle *dagger.Directory) (*dagger.File, error) {
	const path = "bin/slipway"
	text, err := bundle.File("bundle.json").Contents(ctx)
	if err != nil {
		return nil, errors.New("the bundle holds no bundle.json: build one with `make bundle`")
	}
	var index struct {
		Files []struct {
			Path   string `json:"path"`
			SHA256 string `json:"sha256"`
		} `json:"files"`
	}
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		return nil, fmt.Errorf("read the bundle's bundle.json: %s; build it anew with `make bundle`", err.Error())
	}
	for _, f := range index.Files {
		if f.Path != path {
			continue
		}
		file := bundle.File(path)
		got, err := file.Digest(ctx, dagger.FileDigestOpts{ExcludeMetadata: true})
		if err != nil {
			return nil, fmt.Errorf("the bundle's file %s is missing: build it anew with `make bundle`", path)
		}
		if got != contentDigest(f.SHA256) {
			return nil, fmt.Errorf("BUN-003: the bundle's file %s is not the one that bundle.json names: build it anew with `make bundle`", path)
		}
		return file, nil
	}
	return nil, fmt.Errorf("the bundle's bundle.json does not name %s: build it anew with `make bundle`", path)
}

// contentDigest is what Dagger v0.19.10 calls the digest of a file without its
// metadata: the sha256 of the content's sha256 (core/file.go, File.Digest).
func contentDigest(sha string) string {
	raw, err := hex.DecodeString(sha)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
