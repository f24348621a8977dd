package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// waiting stands in for Terraform: its plan takes until the file that GO_ON names is there.
const waiting = `#!/bin/sh
case "$1" in
version) echo '{"terraform_version":"1.13.0","platform":"linux_amd64","provider_selections":{}}' ;;
plan) : >"$PLANS"; while [ ! -e "$GO_ON" ]; do sleep 0.1; done ;;
esac
`

const sleeping, awake = "20260102-030405-a1b2c3", "20260102-040506-d4e5f6"

// TestASleeperDoesNoHarm: of two machines with one bucket one stands still, as a laptop whose
// lid is closed. The other one takes the lock over, no sooner than what worked under it must
// have ended, and when the first one goes on, it stops, and nothing of what the other one has
// written is touched.
func TestASleeperDoesNoHarm(t *testing.T) {
	address, slipway := start(t), program(t)
	root, dir := t.TempDir(), t.TempDir()
	t.Setenv("PLANS", filepath.Join(dir, "plans"))
	t.Setenv("GO_ON", filepath.Join(dir, "never"))
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.tf"), []byte(sixOutputs), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "terraform"), []byte(waiting), 0o755))
	for name, play := range map[string]func(t *testing.T, a, b machine, s *store.Store){"in a step": sleepsInAStep, "in a destroy": sleepsInADestroy} {
		prefix := "team/" + strings.ReplaceAll(name, " ", "-")
		url := URL(address, Bucket, prefix)
		s := open(t, address, Bucket, prefix)
		a, b := machine{slipway, url, t.TempDir(), root, dir}, machine{slipway, url, t.TempDir(), root, dir}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits a minute
			play(t, a, b, s)
		})
	}
}

// over is how long after a holder's last sign of life another one may take its lock.
const over = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace

// takesOver returns what holds the lock on b, after processes of a were stopped.
func takesOver(t *testing.T, b machine, s *store.Store, stopped ...*process) *process {
	t.Helper()
	for _, p := range stopped {
		require.NoError(t, p.signal(syscall.SIGSTOP))
	}
	at := time.Now()
	p := b.holds(t, s, awake)
	require.GreaterOrEqual(t, time.Since(at), over-lock.DefaultBeat)
	return p
}

// requireTooLate has a stopped holder and a step of its run go on, and asserts that both end
// because they have lost the lock. The step answers in a file.
func requireTooLate(t *testing.T, holder, step *process, answer string) {
	t.Helper()
	for _, p := range []*process{holder, step} {
		require.NoError(t, p.signal(syscall.SIGCONT))
	}
	require.Equal(t, int(fault.Locked), holder.code(t, 30*time.Second), holder.errs)
	require.Equal(t, int(fault.Locked), step.code(t, lock.DefaultBeat+lock.DefaultGrace), step.errs)
	text, err := os.ReadFile(answer)
	require.NoError(t, err)
	require.Contains(t, string(text), string(lock.CodeLost))
}

// contents are all values of a store, but for the lock's and what is only of a run.
func contents(t *testing.T, s *store.Store, run string) map[string]string {
	t.Helper()
	out := map[string]string{}
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	for _, key := range keys {
		if strings.HasPrefix(key, "lock/") || strings.HasPrefix(key, "runs/"+run+"/") {
			continue
		}
		data, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		out[key] = string(data)
	}
	return out
}

// deployed are those of values that a destroy removes.
func deployed(values map[string]string) map[string]string {
	out := maps.Clone(values)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, "latest/") || strings.HasPrefix(key, "runs/") })
	return out
}

// keep stores what a run left, with a runtime state.
func (m machine) keep(t *testing.T, run string) ended {
	t.Helper()
	text, err := json.Marshal(contract.RunFiles{Run: run, Files: map[string]string{"report.json": "{}"}, Runtime: &contract.RuntimeState{Deployment: "demo", Run: run}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "keep.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return m.state(t, "keep", `{"path":"`+file+`"}`)
}

// opens has a run that holds the lock open the deployment's state, which gives it an identity.
func (m machine) opens(t *testing.T, run string) {
	t.Helper()
	e := m.state(t, "--result", filepath.Join(t.TempDir(), "opened.json"), "open", `{"who":{"run":"`+run+`"},"deployment":"demo"}`)
	require.Zero(t, e.code, e.errs)
}

func sleepsInAStep(t *testing.T, a, b machine, s *store.Store) {
	holder := a.holds(t, s, sleeping)
	args, answer := a.request(t, sleeping, "infrastructure/terraform", map[string]any{"vars": map[string]any{}}, true)
	step := a.start(t, args...)
	require.Eventually(t, func() bool { _, err := os.Stat(os.Getenv("PLANS")); return err == nil }, time.Minute, 20*time.Millisecond, step.errs)
	require.NotEmpty(t, contents(t, s, sleeping), "it is in the journal")

	second := takesOver(t, b, s, holder, step)
	e := b.keep(t, awake)
	require.Zero(t, e.code, e.errs)
	before := contents(t, s, sleeping)
	require.Contains(t, before, "state/000000000002.yaml")

	requireTooLate(t, holder, step, answer)
	require.Equal(t, int(fault.Locked), a.keep(t, sleeping).code)
	require.Equal(t, int(fault.Locked), a.state(t, "purge", `{"who":{"run":"`+sleeping+`"}}`).code)
	require.Equal(t, before, contents(t, s, sleeping))
	require.NoError(t, second.cmd.Process.Signal(os.Interrupt))
	require.Zero(t, second.code(t, 30*time.Second), second.errs)
}

func sleepsInADestroy(t *testing.T, a, b machine, s *store.Store) {
	const many = 500
	write := func(ctx context.Context, key, text string) {
		require.NoError(t, s.Put(ctx, key, []byte(text)))
	}
	for i := range many {
		write(t.Context(), fmt.Sprintf("data/%03d", i), "of the first deployment")
	}
	write(t.Context(), "secrets/kubeconfig/000000000001.age", "of the first deployment")
	holder := a.holds(t, s, sleeping)
	a.opens(t, sleeping)
	first := a.keep(t, sleeping)
	require.Zero(t, first.code, first.errs)
	late := deployed(contents(t, s, sleeping))
	require.Contains(t, late, "deployment/000000000001.json", "its identity")
	require.Contains(t, late, "state/000000000001.yaml")
	purge := a.start(t, "state", "--root", a.volume, "purge", `{"who":{"run":"`+sleeping+`"}}`)
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), "data/000")
		return err != nil
	}, time.Minute, time.Millisecond, purge.errs)
	second := takesOver(t, b, s, holder, purge)
	left := contents(t, s, sleeping)
	require.Contains(t, left, "secrets/kubeconfig/000000000001.age", "it was stopped on the way")

	e := b.state(t, "purge", `{"who":{"run":"`+awake+`"}}`)
	require.Zero(t, e.code, e.errs)
	require.Empty(t, deployed(contents(t, s, sleeping)))
	b.opens(t, awake) // and installed again
	e = b.keep(t, awake)
	require.Zero(t, e.code, e.errs)
	write(t.Context(), "secrets/kubeconfig/000000000002.age", "of the second deployment")
	write(t.Context(), "journal/a.b/000000000002.json", "of the second deployment")
	before := contents(t, s, sleeping)
	require.Contains(t, before, "deployment/000000000002.json", "its identity")

	require.NoError(t, purge.signal(syscall.SIGCONT))
	require.Equal(t, int(fault.Locked), purge.code(t, 30*time.Second), purge.errs)
	require.NoError(t, holder.signal(syscall.SIGCONT))
	require.Equal(t, int(fault.Locked), holder.code(t, 30*time.Second), holder.errs)
	require.Equal(t, before, contents(t, s, sleeping))
	for key := range late { // had it sent that, and the network been slow
		require.NoError(t, s.Delete(t.Context(), key))
	}
	require.Equal(t, before, contents(t, s, sleeping))
	require.NoError(t, second.cmd.Process.Signal(os.Interrupt))
	require.Zero(t, second.code(t, 30*time.Second), second.errs)
}

// TestTerraformStandsStill in an apply, with all of its machine, while another machine applies,
// too. What it does when it goes on does not get into the state, and is not lost either.
func TestTerraformStandsStill(t *testing.T) {
	a, b, s, goOn := terraformMachines(t)
	input := map[string]any{"vars": map[string]any{"wait": goOn}}

	holder := a.holds(t, s, sleeping)
	args, answer := a.request(t, sleeping, "infrastructure/terraform", input, true)
	step := a.start(t, args...)
	log := filepath.Join(a.volume, "runs", sleeping, "steps/infrastructure.terraform/log.txt")
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(log)
		return strings.Contains(string(text), "(local-exec): locked")
	}, time.Minute, 50*time.Millisecond, step.errs)

	second := takesOver(t, b, s, holder, step)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	r, e := b.step(t, awake, "infrastructure/terraform", input, true)
	require.Zero(t, e.code, e.errs)
	require.Equal(t, "succeeded", r.Status)
	before := contents(t, s, sleeping)
	require.Contains(t, before, "terraform/000000000002.tfstate")

	requireTooLate(t, holder, step, answer)
	after := contents(t, s, sleeping)
	unsaved := "unsaved/" + sleeping + ".tfstate"
	require.Contains(t, after[unsaved], `"terraform_data"`, "what it did")
	delete(after, unsaved)
	require.Equal(t, before, after, "the state is that of the other one")

	input["vars"].(map[string]any)["again"] = "1"
	args, _ = b.request(t, awake, "infrastructure/terraform", input, true)
	args[2], args[3] = "--request", withDigest(t, args[3])
	e = b.run(t, args...)
	require.Zero(t, e.code, e.errs)
	require.Contains(t, e.errs, unsaved+": look for resources that are there twice")
	require.NoError(t, second.cmd.Process.Signal(os.Interrupt))
	require.Zero(t, second.code(t, 30*time.Second), second.errs)
}
