package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// TestRecord: a step that was reused is done as one that ran; one that warned is not.
func TestRecord(t *testing.T) {
	of := func(first pipeline.Status) facts.Facts {
		f := facts.Facts{}
		note(f, &report.Run{Platform: report.Platform{Name: "p", Version: "1", Digest: "d"}, Steps: []report.Step{
			{Stage: "orchestrator", Step: "web", Status: first}, {Stage: report.HooksStage, Step: "h", Status: first},
		}})
		return f
	}
	want := of(pipeline.Succeeded)
	require.Equal(t, facts.Facts{"platform": "p 1 d", "step orchestrator/web": "done"}, want)
	require.NoError(t, want.Compare(of(pipeline.Reused)))
	require.ErrorContains(t, want.Compare(of(pipeline.Warned)), "step orchestrator/web differs")
	require.True(t, hasStep(want, "orchestrator/web"))
	require.False(t, hasStep(want, "https://orchestrator/web"))
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("apiVersion: slipway.sh/v1\n"+text), 0o600))
		return file
	}
	local, existing := write("local.yaml", "provider: local\n"), write("existing.yaml", "provider: existing\nexisting: {kubeconfig: env:NOWHERE}\n")
	for text, args := range map[string][]string{
		"0 rounds are too few":        {"--rounds", "0", "--bundle", "b"},
		`--kinds holds "sun"`:         {"--kinds", "sun", "--bundle", "b"},
		`unexpected argument "extra"`: {"--bundle", "b", "extra"},
		"no bundle":                   {"--bundle", ""},
		"read the configuration":      {"--bundle", "b", "--config", filepath.Join(dir, "none.yaml")},
		"colour":                      {"--bundle", "b", "--config", write("wrong.yaml", "colour: red\n")},
		`--kinds holds "partition": it needs --bucket`: {"--bundle", "b", "--kinds", "partition"},
		"give --rounds 2 or more":                      {"--bundle", "b", "--kinds", "contend,contend", "--rounds", "1"},
		"--pause 0s is too short":                      {"--bundle", "b", "--pause", "0s"},
		"--other-engine needs --bucket":                {"--bundle", "b", "--config", existing, "--other-engine", "unix:///e"},
		"and provider existing":                        {"--bundle", "b", "--bucket", "--other-engine", "unix:///e"},
	} {
		_, err := parse(args, t.Output())
		require.ErrorContains(t, err, text)
	}

	s, err := parse([]string{"--bundle", "b", "--kinds", "kill-step,contend", "--seed", "7", "--platform", "examples/platform/manifests/1.0.0", "--config", local}, t.Output())
	require.NoError(t, err)
	require.Equal(t, "kill-step,contend", names(s.kinds))
	require.Equal(t, 2*time.Minute, s.pause)
	require.Equal(t, uint64(7), s.seed)
	require.True(t, s.own)
	require.Equal(t, filepath.Join(s.root, "b"), s.bundle)
	require.Equal(t, filepath.Join(s.root, "examples/platform/manifests/1.0.0"), s.platform)
	require.Equal(t, local, s.config)
	require.Empty(t, s.lock)

	const anywhere = "kill-conductor,kill-step,kill-engine,kill-holder,stop-conductor,stop-holder,contend,contend-killed,contend-stopped"
	s, err = parse([]string{"--bundle", "b"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, anywhere, names(s.kinds))
	s, err = parse([]string{"--bundle", "b", "--config", existing, "--bucket", "--other-engine", "unix:///e"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, anywhere+",partition", names(s.kinds))
	require.False(t, s.own)

	var help strings.Builder
	_, err = parse([]string{"--help"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, k := range kinds {
		require.Contains(t, help.String(), "\n  "+k.name+"\n    \t"+k.does+"\n")
	}
}

func TestCommandsOfTheDeployment(t *testing.T) {
	d := &deployment{Deployment: slipway.Deployment{Name: "n", Bundle: "/b", Root: "/r"}}
	require.Equal(t, []string{"install", "--name", "n", "--bundle", "/b", "--yes"}, d.install(t.Context()).Args[1:])
	d.config, d.platform, d.Lock = "/c.yaml", "/p", "/l.json"
	require.Equal(t, []string{"install", "--name", "n", "--lock", "/l.json", "--config", "/c.yaml", "--yes", "--platform", "/p"}, d.install(t.Context()).Args[1:])
	require.Equal(t, []string{"destroy", "--name", "n", "--lock", "/l.json", "--config", "/c.yaml", "--yes", "--ignore-not-found"}, d.destroy(t.Context()).Args[1:])

	d.other, d.own = "unix:///other", true
	cmd := d.elsewhere().complete(t.Context(), "--lock-timeout", "1m")
	require.Equal(t, []string{"--lock-timeout", "1m", "--keep-cluster", "--yes", "--platform", "/p"}, cmd.Args[len(cmd.Args)-6:])
	require.Contains(t, cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST=unix:///other")
	require.NotContains(t, d.install(t.Context()).Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST=unix:///other")
}

func TestWhoIsAStep(t *testing.T) {
	require.True(t, process{args: []string{"slipway", "step", "infrastructure/terraform"}}.isStep())
	require.False(t, process{args: []string{"/.init", "slipway", "step", "infrastructure/terraform"}}.isStep())
	require.False(t, process{args: []string{"slipway", "install"}}.isStep())
	hold := process{args: []string{"slipway", "state", "hold", "--user", "u", "--run", "r1", "--workflow", "install"}}
	require.True(t, hold.holds("r1"))
	require.False(t, hold.holds("r2"))
	require.False(t, process{args: []string{"/.init", "slipway", "state", "hold", "--run", "r1"}}.holds("r1"))
	require.False(t, process{args: []string{"slipway", "state", "hold", "--run"}}.holds(""))
}
