package s3

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// program builds Slipway.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slipway")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = filepath.Join("..", "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// machine is one with a state volume of its own. It runs Slipway's program as the
// conductor does in containers.
type machine struct {
	program, url, volume, root string
	tools                      string // directory; empty: that of SLIPWAY_TERRAFORM
}

type ended struct {
	code int
	errs string
}

func (m machine) command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(t.Context(), m.program, args...)
	cmd.Env = append(os.Environ(), "SLIPWAY_STATE_URL="+m.url, "SLIPWAY_STATE_MAKE_KEY=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	return cmd, &errs
}

func (m machine) run(t *testing.T, args ...string) ended {
	t.Helper()
	cmd, errs := m.command(t, args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return ended{cmd.ProcessState.ExitCode(), errs.String()}
}

func (m machine) state(t *testing.T, args ...string) ended {
	t.Helper()
	return m.run(t, append([]string{"state", "--root", m.volume}, args...)...)
}

// result is what a step leaves behind.
type result struct {
	Status string `json:"status"`
	Fault  *struct {
		Code string `json:"code"`
	} `json:"fault"`
}

// request is a step's command line, with its request in a file.
func (m machine) request(t *testing.T, run, step string, input any, locked bool) (args []string, answer string) {
	t.Helper()
	stage, name, _ := strings.Cut(step, "/")
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{
		"run": run, "stage": stage, "step": name, "timeout": "5m", "input": input, "deployment": "demo", "locked": locked,
		"digests": map[string]string{"input": "i", "config": "c", "tools": "t"},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "request.json"), text, 0o600))
	answer = filepath.Join(dir, "result.json")
	return []string{"step", step, "--request", filepath.Join(dir, "request.json"), "--result", answer,
		"--state", m.volume, "--terraform", m.root, "--tools", cmp.Or(m.tools, filepath.Dir(os.Getenv("SLIPWAY_TERRAFORM")))}, answer
}

func (m machine) step(t *testing.T, run, step string, input any, locked bool) (result, ended) {
	t.Helper()
	args, answer := m.request(t, run, step, input, locked)
	e := m.run(t, args...)
	var r result
	text, err := os.ReadFile(answer)
	require.NoError(t, err, e.errs)
	require.NoError(t, json.Unmarshal(text, &r))
	return r, e
}

// process is a command that runs beside the test, in a process group of its own.
type process struct {
	cmd  *exec.Cmd
	errs *bytes.Buffer
	done chan error
}

func (m machine) start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd, errs := m.command(t, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{cmd, errs, make(chan error, 1)}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = p.signal(syscall.SIGKILL) }) // of a test that failed, it may stand still
	go func() { p.done <- cmd.Wait() }()
	return p
}

// signal is sent to the process and to all that it has started.
func (p *process) signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

// code is the exit code, once the process has ended, which it must within a limit.
func (p *process) code(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case err := <-p.done:
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatal(err)
		}
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("%v goes on after %s", p.cmd.Args, limit)
		return 0
	}
}

// holds takes the deployment's lock, which is in s.
func (m machine) holds(t *testing.T, s *store.Store, run string) *process {
	t.Helper()
	_, port, err := net.SplitHostPort(Free(t, "127.0.0.1")) // of one machine, two cannot have the same
	require.NoError(t, err)
	p := m.start(t, "state", "--root", m.volume, "hold", `{"who":{"user":"u","host":"h","run":"`+run+`","workflow":"install"},"patience":"15s","port":`+port+`}`)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-p.done:
			t.Fatalf("the holder ended: %v: %s", err, p.errs)
		default:
		}
		if _, err := lock.New(s, lock.Options{}).HeldBy(t.Context(), run); err == nil {
			return p
		}
	}
	t.Fatalf("it does not get the lock: %s", p.errs)
	return nil
}

// hold is holds; end gives the lock up.
func (m machine) hold(t *testing.T, s *store.Store, run string) (end func(os.Signal)) {
	t.Helper()
	p := m.holds(t, s, run)
	return func(s os.Signal) {
		require.NoError(t, p.cmd.Process.Signal(s))
		err := <-p.done
		if s == os.Interrupt {
			require.NoError(t, err, p.errs)
		}
	}
}

// terraformMachines are two machines with one bucket, whose store is s, and a Terraform root
// that waits in an apply until there is a file goOn, the root's variable wait.
func terraformMachines(t *testing.T) (a, b machine, s *store.Store, goOn string) {
	t.Helper()
	if os.Getenv("SLIPWAY_TERRAFORM") == "" {
		t.Skip("SLIPWAY_TERRAFORM does not name a terraform; the bundle has one in bin/")
	}
	address, slipway := start(t), program(t)
	url := URL(address, Bucket, "team/demo")
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.tf"), []byte(sixOutputs), 0o600))
	a, b = machine{slipway, url, t.TempDir(), root, ""}, machine{slipway, url, t.TempDir(), root, ""}
	return a, b, open(t, address, Bucket, "team/demo"), filepath.Join(t.TempDir(), "go on")
}

// TestTwoMachines: what one machine does, the other one sees, reuses, waits for and
// takes over. They have nothing in common but the bucket.
func TestTwoMachines(t *testing.T) {
	a, b, s, goOn := terraformMachines(t)
	input := map[string]any{"vars": map[string]any{"wait": goOn}}
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	const first, second, third, fourth = "20260102-030405-a1b2c3", "20260102-030406-a1b2c3", "20260102-030407-a1b2c3", "20260102-030408-a1b2c3"

	end := a.hold(t, s, first)
	r, e := a.step(t, first, "infrastructure/terraform", input, true)
	require.Zero(t, e.code, e.errs)
	require.Equal(t, "succeeded", r.Status)

	t.Run("one of them has the lock", func(t *testing.T) {
		e := b.state(t, "hold", `{"who":{"user":"v","host":"i","run":"`+second+`","workflow":"install"}}`)
		require.Equal(t, 6, e.code, e.errs)
		require.Contains(t, e.errs, "u@h (install, run "+first+")")
		r, e := b.step(t, second, "infrastructure/terraform", input, true)
		require.Equal(t, 6, e.code, e.errs)
		require.Equal(t, "LOK-002", r.Fault.Code)
	})

	t.Run("what one keeps, the other one shows", func(t *testing.T) {
		record := &report.Run{ID: first, Workflow: "install", Deployment: "demo", Started: time.Now()}
		record.Plan([]pipeline.Node{{Key: pipeline.Key{Stage: "infrastructure", Name: "terraform"}}})
		record.Finish(nil, nil, time.Now())
		text, err := record.Encode()
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "file")
		kept, err := json.Marshal(contract.RunFiles{Run: first, Files: map[string]string{report.RecordFile: string(text)}, Runtime: &contract.RuntimeState{Deployment: "demo"}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, kept, 0o600))
		e := a.state(t, "keep", `{"path":"`+file+`"}`)
		require.Zero(t, e.code, e.errs)

		for _, args := range [][]string{{"runs"}, {"show"}, {"run", `{"id":"` + first + `","deployment":"demo"}`}} {
			e := b.state(t, append([]string{"--result", file}, args...)...)
			require.Zero(t, e.code, e.errs)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), first, args)
		}
		out := filepath.Join(t.TempDir(), "out")
		e = b.state(t, "--result", file, "report", `{"path":"`+out+`"}`)
		require.Zero(t, e.code, e.errs)
		log, err := os.ReadFile(filepath.Join(out, "steps/infrastructure.terraform/log.txt"))
		require.NoError(t, err)
		require.Contains(t, string(log), "Apply complete!")
		require.FileExists(t, filepath.Join(out, "report.html"))
	})
	end(os.Interrupt)

	t.Run("what one did, the other one reuses", func(t *testing.T) {
		end := b.hold(t, s, second)
		r, e := b.step(t, second, "infrastructure/terraform", input, true)
		require.Zero(t, e.code, e.errs)
		require.Equal(t, "reused", r.Status)
		end(os.Interrupt)
	})

	t.Run("a secret is read with its key only", func(t *testing.T) {
		key, _, err := store.NewVaultKey()
		require.NoError(t, err)
		require.NoError(t, store.OpenVault(s, key).Put(t.Context(), 1, "kubeconfig", redact.New([]byte("c4nary"))))
		e := b.state(t, "--result", filepath.Join(t.TempDir(), "file"), "kubeconfig")
		require.Equal(t, 2, e.code, e.errs)
		require.Contains(t, e.errs, "SEC-002")
		r, e := b.step(t, second, "infrastructure/preflight", map[string]any{"requirements": map[string]any{}}, false)
		require.Equal(t, 2, e.code, e.errs)
		require.Equal(t, "SEC-002", r.Fault.Code)
	})

	t.Run("a bucket that is not there is named before anything starts", func(t *testing.T) {
		c := machine{a.program, strings.Replace(a.url, "s3://"+Bucket, "s3://nowhere", 1), t.TempDir(), a.root, ""}
		r, e := c.step(t, first, "infrastructure/preflight", map[string]any{"requirements": map[string]any{}}, false)
		require.Equal(t, 3, e.code, e.errs)
		require.Equal(t, "STO-005", r.Fault.Code)
		require.Equal(t, 3, c.state(t, "hold", `{"who":{"run":"`+first+`"}}`).code)
	})

	t.Run("a machine that is killed is taken over", func(t *testing.T) {
		require.NoError(t, os.Remove(goOn))
		end := a.hold(t, s, third)
		other := map[string]any{"vars": map[string]any{"wait": goOn, "again": "1"}}
		args, _ := a.request(t, third, "infrastructure/terraform", other, true)
		args[2], args[3] = "--request", withDigest(t, args[3])
		cmd, errs := a.command(t, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		log := filepath.Join(a.volume, "runs", third, "steps/infrastructure.terraform/log.txt")
		require.Eventually(t, func() bool {
			text, _ := os.ReadFile(log)
			return bytes.Contains(text, []byte("(local-exec): locked"))
		}, time.Minute, 50*time.Millisecond, "%s", errs)
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), "Terraform too")
		require.Error(t, cmd.Wait())
		end(os.Kill)

		require.NoError(t, os.WriteFile(goOn, nil, 0o600))
		end = b.hold(t, s, fourth) // once the other one has given no sign of life for long enough
		r, e := b.step(t, fourth, "infrastructure/terraform", other, true)
		require.Zero(t, e.code, e.errs)
		require.Equal(t, "succeeded", r.Status)
		keys, err := s.List(t.Context(), "terraform/")
		require.NoError(t, err)
		require.Equal(t, []string{"terraform/000000000001.tfstate", "terraform/000000000004.tfstate"}, keys, "the last one, and the one before")

		r, e = b.step(t, fourth, "infrastructure/terraform-destroy", other, true)
		require.Zero(t, e.code, e.errs)
		require.Equal(t, "succeeded", r.Status)
		e = b.state(t, "purge", `{"who":{"run":"`+fourth+`"}}`)
		require.Zero(t, e.code, e.errs)
		end(os.Interrupt)
		keys, err = s.List(t.Context(), "")
		require.NoError(t, err)
		for _, key := range keys {
			require.Regexp(t, `^(latest|lock|runs)/`, key)
			text, err := s.Get(t.Context(), key)
			require.NoError(t, err)
			require.NotContains(t, string(text), os.Getenv("AWS_SECRET_ACCESS_KEY"), key)
		}
	})

	for _, volume := range []string{a.volume, b.volume} {
		require.NoDirExists(t, filepath.Join(volume, "lock"), "the volume is working space")
		require.NoDirExists(t, filepath.Join(volume, "journal"))
	}
}

// withDigest is a request with another digest of its input, in a file beside it.
func withDigest(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`"input":"i"`), []byte(`"input":"j"`), 1)
	require.NoError(t, os.WriteFile(file+".2", text, 0o600))
	return file + ".2"
}

// sixOutputs is a Terraform root as a provider has one, whose apply lasts until the
// file that wait names is there.
const sixOutputs = `
terraform {
  backend "local" {}
}

variable "wait" {
  type = string
}

variable "again" {
  type    = string
  default = "0"
}

resource "terraform_data" "slow" {
  triggers_replace = var.again
  provisioner "local-exec" {
    command     = "echo locked; while [ ! -e \"$GO_ON\" ]; do sleep 0.05; done"
    environment = { GO_ON = var.wait }
  }
}

output "cluster_name" { value = { name = "demo" } }
output "api_endpoint" { value = { url = "https://cluster:6443" } }
output "storage_class" { value = { name = "local-path" } }
output "load_balancer" { value = { kind = "node" } }
output "object_store" { value = { kind = "none", url = "" } }
output "database" { value = { kind = "in-cluster", host = "", port = 0 } }
`
