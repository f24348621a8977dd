package config_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// steps returns the steps of a provider with few steps.
func steps(*config.Config) (map[string][]string, error) {
	return map[string][]string{
		config.Install:  {"infrastructure/terraform", "orchestrator/sync"},
		config.Upgrade:  {"infrastructure/terraform", "orchestrator/sync"},
		config.Rollback: {"infrastructure/terraform", "orchestrator/sync"},
		config.Destroy:  {"infrastructure/terraform-destroy"},
	}, nil
}

func TestHooks(t *testing.T) {
	c, err := config.Load(v1(`hooks:
  - name: backup
    before: orchestrator/sync
    workflows: [install]
    image: registry.example.com:5000/tools/backup:1.2@`+digest+`
    run: [/backup, --all]
    env: {KEEP: "3"}
    secrets: {TOKEN: env:BACKUP_TOKEN, KEY: "file:/run/key"}
    timeout: 90s
    optional: true
  - name: timing
    after: "*"
    script: |
      echo "$SLIPWAY_STEP $SLIPWAY_SECONDS"
  - name: notify
    after: workflow
    always: true
    run: [curl, https://example.com]
  - name: remove
    after: infrastructure/terraform-destroy
    run: ["true"]
`), config.Options{DefaultProvider: "local", Steps: steps})
	require.NoError(t, err)
	require.Equal(t, []config.Hook{
		{
			Name: "backup", Before: "orchestrator/sync", Workflows: []string{"install"},
			Image: "registry.example.com:5000/tools/backup:1.2@" + digest, Run: []string{"/backup", "--all"},
			Env: map[string]string{"KEEP": "3"}, Secrets: map[string]config.SecretRef{"TOKEN": "env:BACKUP_TOKEN", "KEY": "file:/run/key"},
			Timeout: config.Duration(90 * time.Second), Optional: true,
		},
		{Name: "timing", After: "*", Script: "echo \"$SLIPWAY_STEP $SLIPWAY_SECONDS\"\n", Timeout: config.Duration(5 * time.Minute)},
		{Name: "notify", After: "workflow", Always: true, Run: []string{"curl", "https://example.com"}, Timeout: config.Duration(5 * time.Minute)},
		{Name: "remove", After: "infrastructure/terraform-destroy", Run: []string{"true"}, Timeout: config.Duration(5 * time.Minute)},
	}, c.Hooks)

	names := func(workflow string) (out []string) {
		for _, h := range c.HooksOf(workflow) {
			out = append(out, h.Name)
		}
		return out
	}
	require.Equal(t, []string{"backup", "timing", "notify", "remove"}, names(config.Install))
	require.Equal(t, []string{"timing", "notify", "remove"}, names(config.Destroy))
	require.Empty(t, names(config.Configure), "none of them names it")

	require.Equal(t, []string{"/backup", "--all"}, c.Hooks[0].Command())
	require.Equal(t, []string{"sh", "-eu", "-c", "echo \"$SLIPWAY_STEP $SLIPWAY_SECONDS\"\n"}, c.Hooks[1].Command())
	at, before := c.Hooks[0].Target()
	require.Equal(t, "orchestrator/sync", at)
	require.True(t, before)
	at, before = c.Hooks[2].Target()
	require.Equal(t, "workflow", at)
	require.False(t, before)

	again, err := config.Load(c.Canonical(), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, c.Hooks, again.Hooks)
}

func TestHooks_allProblemsAtOnce(t *testing.T) {
	_, err := config.Load(v1(`hooks:
  - name: Backup
    before: orchestrator/sinc
    after: workflow
    run: [a]
    script: b
  - before: orchestrator/sinc
    image: alpine:3.20
    timeout: 10ms
    always: true
  - name: twice
    after: orchestrator/sync
    workflows: [install, destroy, install, repair]
    run: [""]
    image: "not an image"
    env:
      SLIPWAY_RUN: hunter2
      slipway_x: hunter2
      1A: hunter2
      BOTH: hunter2
      NUM: 3
    secrets:
      BOTH: env:BOTH
      LITERAL: hunter2
      NOTHING:
  - name: twice
    after: orchestrator/sync
    workflows: [destroy]
    run: ["x\0y"]
    optional: "yes"
  -
  - name: nowhere
    script: "true"
    nam: x
`), config.Options{DefaultProvider: "local", Steps: steps})
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeInvalid})
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	const inBoth = `want workflow, "*" for each step, a stage, or a step of install: infrastructure/terraform, orchestrator/sync; of destroy: infrastructure/terraform-destroy`
	require.Equal(t, []string{
		`line 2: hooks[0].name: got "Backup", want 1 to 40 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen`,
		`line 4: hooks[0].after: got after besides before, want one of them; a hook for each place`,
		`line 6: hooks[0].script: got script besides run, want one of them`,
		`line 7: hooks[1].name: got nothing, want 1 to 40 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen`,
		`line 7: hooks[1].before: got "orchestrator/sinc", ` + inBoth,
		`line 7: hooks[1].run: got nothing, want a command with its arguments, [curl, -fsS, "https://…"]; or set script`,
		`line 8: hooks[1].image: got an image without its digest, want alpine:3.20@sha256:<64 hex digits>; docker buildx imagetools inspect alpine:3.20 shows them`,
		`line 9: hooks[1].timeout: got 10ms, want a duration from 1s to 24h`,
		`line 10: hooks[1].always: got true with before, want it with after: a hook before something knows no outcome`,
		`line 13: hooks[2].workflows[2]: got "install" again, want each workflow once`,
		`line 13: hooks[2].workflows[3]: got "repair", want ` + document.OneOf(config.Workflows()...),
		`line 14: hooks[2].run[0]: got nothing, want a command`,
		`line 15: hooks[2].image: got "not an image", want an image by digest such as registry.example.com/tools/backup@sha256:<64 hex digits>`,
		`line 17: hooks[2].env.SLIPWAY_RUN: got a name that starts with SLIPWAY_, want another one: these are Slipway's own`,
		`line 18: hooks[2].env.slipway_x: got a name that starts with SLIPWAY_, want another one: these are Slipway's own`,
		`line 19: hooks[2].env.1A: got "1A", want the name of a variable: letters, digits and underscores, not starting with a digit`,
		`line 21: hooks[2].env.NUM: got a number, want text (put it in quotes)`,
		`line 23: hooks[2].secrets.BOTH: got a variable that is in env too, want it in one of them`,
		`line 24: hooks[2].secrets.LITERAL: got something else, want where the secret is: env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD; the secret itself does not belong in this file`,
		`line 25: hooks[2].secrets.NOTHING: got nothing, want where the secret is: env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD`,
		`line 26: hooks[3].name: got "twice", the name of hooks[2], want a name of its own`,
		`line 27: hooks[3].after: got "orchestrator/sync", which is no step and no stage of destroy, want workflow, "*" for each step, a stage, or a step of destroy: infrastructure/terraform-destroy`,
		`line 29: hooks[3].run[0]: got a NUL character, want text without NUL characters`,
		`line 30: hooks[3].optional: got text, want true or false`,
		`line 31: hooks[4]: got nothing, want a value`,
		`line 32: hooks[5].before: got nothing, want a step (stage/name), a stage, "*" for each step, or workflow; or set after`,
		`line 34: hooks[5].nam: got an unknown field, want "name"`,
	}, got)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestHooks_aroundConfiguring(t *testing.T) {
	c, err := config.Load(v1(`hooks:
  - {name: check, before: workflow, workflows: [configure], run: [x]}
  - {name: both, after: workflow, workflows: [install, configure], run: [x]}
  - {name: other, after: workflow, run: [x]}
`), config.Options{DefaultProvider: "local", Steps: steps})
	require.NoError(t, err)
	for workflow, want := range map[string][]string{
		config.Configure: {"check", "both"}, config.Install: {"both", "other"}, config.Destroy: {"other"},
	} {
		var names []string
		for _, h := range c.HooksOf(workflow) {
			names = append(names, h.Name)
		}
		require.Equal(t, want, names, workflow)
	}

	_, err = config.Load(v1(`hooks:
  - {name: step, before: orchestrator/sync, workflows: [configure], run: [x]}
  - {name: each, after: "*", workflows: [install, configure], run: [x]}
  - {name: unknown, before: orchestrator/sync, workflows: [configure, repair], run: [x]}
`), config.Options{DefaultProvider: "local", Steps: steps})
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	require.Equal(t, []string{
		`line 2: hooks[0].before: got "orchestrator/sync" for configure, want workflow: configuring has no steps`,
		`line 3: hooks[1].after: got "*" for configure, want workflow: configuring has no steps; or a hook of its own for configure`,
		`line 4: hooks[2].workflows[1]: got "repair", want ` + document.OneOf(config.Workflows()...),
		`line 4: hooks[2].before: got "orchestrator/sync" for configure, want workflow: configuring has no steps`,
	}, got)
}

func TestHooks_aroundAStage(t *testing.T) {
	load := func(hook string) error {
		_, err := config.Load(v1("hooks:\n  - {name: a, run: [x], "+hook+"}\n"), config.Options{DefaultProvider: "local", Steps: steps})
		return err
	}
	require.NoError(t, load("before: orchestrator"))
	require.NoError(t, load("after: infrastructure, always: true, workflows: [install, destroy]"))
	require.ErrorContains(t, load("before: orchestra"), `hooks[0].before: got "orchestra", want workflow, "*" for each step, a stage, or a step of install`)
	require.ErrorContains(t, load("before: orchestrator, workflows: [destroy]"), `got "orchestrator", which is no step and no stage of destroy`)
	require.ErrorContains(t, load("before: orchestrator, workflows: [configure]"), "configuring has no steps")
}

func TestHooks_stepsOfTheProvider(t *testing.T) {
	text := v1("hooks:\n  - {name: a, before: no/such, run: [x]}\n  - {name: b, after: Every thing, run: [x]}\n")
	_, err := config.Load(text, config.Options{DefaultProvider: "local"})
	require.Len(t, config.Problems(err), 1, "without the steps, only what cannot be the name of one: %v", err)
	require.ErrorContains(t, err, `line 3: hooks[1].after: got "Every thing", want a step (stage/name), a stage, "*" for each step, or workflow`)

	_, err = config.Load(text, config.Options{DefaultProvider: "local", Steps: steps})
	require.Len(t, config.Problems(err), 2, "%v", err)

	broken := func(*config.Config) (map[string][]string, error) { return nil, errors.New("no root") }
	_, err = config.Load(text, config.Options{DefaultProvider: "local", Steps: broken})
	require.EqualError(t, err, "list the steps of provider local: no root")
	_, err = config.Load(nil, config.Options{DefaultProvider: "local", Steps: broken})
	require.NoError(t, err, "without hooks nobody asks")

	bad := func(string, json.RawMessage) []config.Problem {
		return []config.Problem{{Field: "ports", Want: "ports"}}
	}
	_, err = config.Load(text, config.Options{DefaultProvider: "local", Steps: broken, Section: bad})
	require.ErrorContains(t, err, "local.ports", "the steps of an invalid section are not known")
}
