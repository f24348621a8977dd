package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/adrg/xdg"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/daggercli"
)

// withDocker puts a docker command on PATH that does, for the subcommands of a case of sh, what a
// broken one would, and a dagger CLI whose engine answers or not. It returns the folder of users'
// configuration. A daemon that works is ci/test/e2e's.
func withDocker(t *testing.T, cases, dagger string) (config string) {
	t.Helper()
	alone(t)
	config = filepath.Join(t.TempDir(), "config")
	t.Cleanup(xdg.Reload) // once the variable is as it was
	t.Setenv("XDG_CONFIG_HOME", config)
	xdg.Reload()
	t.Setenv(envImage, "registry.example/engine@sha256:1")
	bin := t.TempDir()
	for name, script := range map[string]string{
		"dagger": `case "$1" in version) echo 'dagger ` + daggerVersion + ` (image) linux/amd64' ;; *) ` + dagger + ` ;; esac`,
		"docker": `case "$1 $2" in "info "*) echo 28.1.0 ;; ` + cases + ` *) echo "unexpected: $*" >&2; exit 9 ;; esac`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	t.Setenv("PATH", bin)
	fakeCheckout(t)
	return config
}

const (
	noContainer = `"container ls") ;; `
	container   = `"container ls") echo 0123abcd ;; "container inspect") echo registry.example/engine@sha256:1 ;; `
	answers     = `echo "$_EXPERIMENTAL_DAGGER_RUNNER_HOST" >&2; echo ` + daggerVersion
	fails       = `echo no connection >&2; exit 1`
)

func TestStartInDockerFails(t *testing.T) {
	for name, test := range map[string]struct {
		docker, dagger string
		wants          []string
	}{
		"Docker cannot list": {`"container ls") echo permission denied >&2; exit 1 ;; `, answers,
			[]string{"ENG-006", "docker container: exit status 1", "permission denied"}},
		"the image cannot be pulled": {noContainer + `"image inspect") exit 1 ;; "pull --quiet") echo unauthorized >&2; exit 1 ;; `, answers,
			[]string{"ENG-003", "unauthorized", "docker login", envImage}},
		"the container is of another image": {`"container ls") echo 0123abcd ;; "container inspect") echo registry.example/engine@sha256:0 ;; `, answers,
			[]string{"ENG-006", "of registry.example/engine@sha256:0, not of registry.example/engine@sha256:1", "make engine-stop engine", "stays"}},
		"the engine does not answer": {noContainer + `"image inspect") ;; "logs --tail") echo the engine has ended ;; `, fails,
			[]string{"ENG-006", "no connection", "the end of its log:\nthe engine has ended", "docker logs slipway-engine"}},
	} {
		t.Run(name, func(t *testing.T) {
			withDocker(t, test.docker, test.dagger)
			code, _, stderr := engine(t, "start")
			require.Equal(t, 3, code)
			for _, want := range test.wants {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestEngineInDockerIsFound(t *testing.T) {
	withDocker(t, container, answers)
	code, _, stderr := engine(t, "start")
	require.Zero(t, code, stderr)
	code, stdout, stderr := engine(t, "env")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "export "+envRunner+"='docker-image://registry.example/engine@sha256:1?cleanup=false&container=slipway-engine&volume=slipway-engine'\n")
}

func TestNoEngineInDocker(t *testing.T) {
	withDocker(t, noContainer, answers)
	code, _, stderr := engine(t, "env")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-008")
	require.Contains(t, stderr, "no container of Docker is called slipway-engine")
	code, _, stderr = engine(t, "stop")
	require.Zero(t, code)
	require.Contains(t, stderr, "none of ours runs")
}

// TestAnotherStoresContainer is not ended.
func TestAnotherStoresContainer(t *testing.T) {
	withDocker(t, container+`stop*) echo it was stopped >&2; exit 1 ;; `, answers)
	code, _, stderr := engine(t, "stop")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "none of ours runs")
}

// TestTheContainerOfTheShell is no engine of somebody else's: what is wanted may be another image.
func TestTheContainerOfTheShell(t *testing.T) {
	withDocker(t, container, answers)
	t.Setenv(envRunner, dockerHost("registry.example/engine@sha256:1"))
	t.Setenv(envImage, "registry.example/engine@sha256:2")
	code, _, stderr := engine(t, "start")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-006")
}

func TestImageWithoutARegistry(t *testing.T) {
	withDocker(t, noContainer, answers)
	t.Setenv(envImage, "engine:dev")
	code, _, stderr := engine(t, "start")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "SLIPWAY_ENGINE_IMAGE=docker.io/library/engine:dev")
}

func TestStopInDockerFails(t *testing.T) {
	withDocker(t, container+`"stop --time") echo device busy >&2; exit 1 ;; `, answers)
	code, _, stderr := engine(t, "start")
	require.Zero(t, code, stderr)
	code, _, stderr = engine(t, "stop")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "ENG-006")
	require.Contains(t, stderr, "device busy")
}

func TestConfigureDocker(t *testing.T) {
	config := withDocker(t, container, answers)
	file := filepath.Join(config, "dagger/engine.json")
	_, _, stderr := engine(t, "start")
	require.Contains(t, stderr, "wrote "+file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, daggercli.EngineConfig+"\n", string(text))
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left of how it was written")
	_, _, stderr = engine(t, "start")
	require.NotContains(t, stderr, "warning")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	_, _, stderr = engine(t, "start")
	require.NotContains(t, stderr, "wrote")
	require.Contains(t, stderr, "warning: "+file+" exists already")
	require.Contains(t, stderr, daggercli.EnginePolicy)
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "{}", string(text), "one that is there stays")
}
