package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
)

// dockerName is what the engine's container in Docker is called, and its volume. The dagger CLI
// removes containers whose names begin with dagger-engine-, with their volumes, when it starts
// one of another version (v0.20.8, engine/client/drivers/container.go): not this one.
const dockerName = "slipway-engine"

// envImage names the image of the engine that Docker runs, in place of Dagger's own.
const envImage = "SLIPWAY_ENGINE_IMAGE"

const vendorImage = "registry.dagger.io/engine:" + daggerVersion

// stopSeconds is how long Docker waits for the engine, and what runs in it, to end.
const stopSeconds = "60"

// dockerHost is the runner host with which the dagger CLI starts the container, or connects to it.
func dockerHost(image string) string {
	return "docker-image://" + image + "?" + url.Values{"container": {dockerName}, "volume": {dockerName}, "cleanup": {"false"}}.Encode()
}

// foreign reports whether an address is that of an engine which this program did not start.
func (c *control) foreign(host string) bool {
	if host == "" || host == c.paths.host() {
		return false
	}
	u, err := url.Parse(host)
	return err != nil || u.Query().Get("container") != dockerName
}

// docker runs the docker command; an error has what it said.
func docker(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("docker %s: %w; it said:\n%s", args[0], err, build.LastLines(complaint.String(), 15))
	}
	return strings.TrimSpace(out.String()), nil
}

func dockerResponds(ctx context.Context) bool {
	if _, err := exec.LookPath("docker"); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	version, err := docker(ctx, "info", "--format", "{{.ServerVersion}}")
	return err == nil && version != ""
}

// dockerImage is the image of the engine's container; empty without one.
func dockerImage(ctx context.Context) (string, error) {
	id, err := docker(ctx, "container", "ls", "--all", "--filter", "name=^/?"+dockerName+"$", "--format", "{{.ID}}")
	if err != nil || id == "" {
		return "", err
	}
	return docker(ctx, "container", "inspect", dockerName, "--format", "{{.Config.Image}}") // as it was named, by digest or not
}

func (c *control) startInDocker(ctx context.Context, cli string) error {
	op := "start an engine in Docker"
	if err := c.configureDocker(daggercli.EngineFile()); err != nil {
		return err
	}
	image := cmp.Or(os.Getenv(envImage), vendorImage)
	if !strings.Contains(image, "/") { // the address of an engine is a URL, with the image in it
		return &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: op, Err: fmt.Errorf("%s=%s names no registry", envImage, image), Fix: "write it out: " + envImage + "=docker.io/library/" + image}
	}
	there, err := dockerImage(ctx)
	switch {
	case err != nil:
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: op, Err: err, Fix: "see what docker says, then run make engine again"}
	case there != "" && there != image:
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: op, Err: fmt.Errorf("the container %s is of %s, not of %s", dockerName, there, image),
			Fix: "run: make engine-stop engine (the volume " + dockerName + ", with all deployments, stays), or set " + envImage + "=" + there}
	}
	if err := os.MkdirAll(c.paths.dir, 0o711); err != nil {
		return err
	}
	if err := os.WriteFile(c.paths.inDocker, nil, 0o644); err != nil {
		return err
	}
	p := build.NewReporter(os.Stderr, 1)
	err = p.Do("engine "+daggerVersion, "starting", func(say func(string)) (bool, error) {
		if there == "" {
			if err := pullForDocker(ctx, image, say); err != nil {
				return false, &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: op, Err: err,
					Fix: "make its registry reachable (docker login, where it wants an account), or set " + envImage + " to an engine's image that Docker has or can pull (make engine-image makes one)"}
			}
		}
		err := coreVersion(ctx, cli, dockerHost(image))
		if err == nil {
			return false, nil
		}
		if logs, logErr := dockerLogs(ctx); logErr == nil && logs != "" {
			err = fmt.Errorf("%w\nthe end of its log:\n%s", err, logs)
		}
		return false, &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: op, Err: err, Fix: "read the log (docker logs " + dockerName + "), then run: make engine-stop engine"}
	})
	if err != nil {
		return err
	}
	p.Finish("engine " + daggerVersion + " is the container " + dockerName + " of " + image + "; deployments are in the volume " + dockerName)
	return c.linkCLI(cli)
}

// pullForDocker has Docker pull an image, if it does not have it.
func pullForDocker(ctx context.Context, image string, say func(string)) error {
	if _, err := docker(ctx, "image", "inspect", image, "--format", "{{.Id}}"); err == nil {
		return nil
	}
	say("pulling " + image)
	_, err := docker(ctx, "pull", "--quiet", image)
	if err == nil {
		say("starting")
	}
	return err
}

func dockerLogs(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "logs", "--tail", "15", dockerName).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// imageInDocker is the image of the engine's container, or why there is none to connect to.
func imageInDocker(ctx context.Context) (string, error) {
	if !dockerResponds(ctx) {
		return "", errors.New("no Docker daemon does, either")
	}
	image, err := dockerImage(ctx)
	if err == nil && image == "" {
		err = errors.New("no container of Docker is called " + dockerName)
	}
	return image, err
}

// stopInDocker ends the engine's container, if it was started from this store, and removes it;
// its volume stays.
func (c *control) stopInDocker(ctx context.Context) error {
	if _, err := os.Stat(c.paths.inDocker); errors.Is(err, fs.ErrNotExist) {
		c.logf("engine: none of ours runs")
		return nil
	}
	if !dockerResponds(ctx) {
		c.logf("engine: no Docker daemon answers; its container %s starts again with it", dockerName)
		return nil
	}
	image, err := dockerImage(ctx)
	if err == nil && image == "" {
		c.logf("engine: none of ours runs")
		return os.RemoveAll(c.paths.inDocker)
	}
	if err == nil {
		_, err = docker(ctx, "stop", "--time", stopSeconds, dockerName)
	}
	if err == nil {
		_, err = docker(ctx, "rm", dockerName)
	}
	if err != nil {
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "stop the engine", Err: err, Fix: "see what docker says, then run make engine-stop again"}
	}
	c.logf("engine: the container %s has ended; the volume %s stays", dockerName, dockerName)
	return os.RemoveAll(c.paths.inDocker)
}
