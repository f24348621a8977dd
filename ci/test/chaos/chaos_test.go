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
		`--kinds holds "api": it needs the node that Slipway runs, and that of provider existing is not Slipway's; give --kinds conductor,step,hold,`: {"--bundle", "b", "--config", existing, "--kinds", "step,api"},
		`--kinds holds "partition": it needs --bucket`: {"--bundle", "b", "--kinds", "partition"},
		"--from-round 4 is none of 3 rounds":           {"--bundle", "b", "--rounds", "3", "--from-round", "4", "--seed", "1"},
		"--from-round goes on with the --seed":         {"--bundle", "b", "--from-round", "4"},
		"--pause 0s is too short":                      {"--bundle", "b", "--pause", "0s"},
		"--other-engine needs --bucket":                {"--bundle", "b", "--config", existing, "--other-engine", "unix:///e"},
		"and provider existing":                        {"--bundle", "b", "--bucket", "--other-engine", "unix:///e"},
	} {
		_, err := parse(args, t.Output())
		require.ErrorContains(t, err, text)
	}

	s, err := parse([]string{"--bundle", "b", "--kinds", "step,api", "--seed", "7", "--platform", "examples/platform/manifests/1.0.0", "--config", local}, t.Output())
	require.NoError(t, err)
	require.Equal(t, "step,api", names(s.kinds))
	require.Equal(t, 1, s.from)
	require.Equal(t, 2*time.Minute, s.pause)
	require.Equal(t, uint64(7), s.seed)
	require.True(t, s.own)
	require.Equal(t, filepath.Join(s.root, "b"), s.bundle)
	require.Equal(t, filepath.Join(s.root, "examples/platform/manifests/1.0.0"), s.platform)
	require.Equal(t, local, s.config)
	require.Empty(t, s.lock)

	const anywhere = "conductor,step,hold,kill-hold,engine,pause-conductor,pause-step,pause-hold,pause-engine,contend"
	for want, args := range map[string][]string{
		"conductor,step,hold,kill-hold,engine,api,pause-conductor,pause-step,pause-hold,pause-engine,contend": {},
		anywhere + ",partition": {"--config", existing, "--bucket", "--other-engine", "unix:///e"},
	} {
		s, err := parse(append([]string{"--bundle", "b"}, args...), t.Output())
		require.NoError(t, err)
		require.Equal(t, want, names(s.kinds))
	}
	s, err = parse([]string{"--bundle", "b", "--config", existing, "--kinds", anywhere, "--seed", "7", "--rounds", "200", "--from-round", "101"}, t.Output())
	require.NoError(t, err)
	require.False(t, s.own)
	require.Equal(t, anywhere, names(s.kinds))
	require.Equal(t, 101, s.from)

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
	d.config, d.platform, d.to, d.Lock = "/c.yaml", "/p", "a/b", "/l.json"
	require.Equal(t, []string{"install", "--name", "n", "--lock", "/l.json", "--config", "/c.yaml", "--yes", "--platform", "/p", "--until", "a/b"}, d.install(t.Context()).Args[1:])
	require.Equal(t, []string{"destroy", "--name", "n", "--lock", "/l.json", "--config", "/c.yaml", "--yes", "--ignore-not-found"}, d.destroy(t.Context()).Args[1:])

	d.other, d.own = "unix:///other", true
	cmd := d.elsewhere().complete(t.Context(), "--lock-timeout", "1m")
	require.Equal(t, []string{"--lock-timeout", "1m", "--keep-cluster", "--yes", "--platform", "/p", "--until", "a/b"}, cmd.Args[len(cmd.Args)-8:])
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
	require.True(t, process{args: []string{"/usr/local/bin/slipway-node", "kube-apiserver", "--x"}}.isAPIServer())
}
