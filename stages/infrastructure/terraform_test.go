package infrastructure

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// realTerraform is the folder of a terraform binary, from the environment.
func realTerraform(t *testing.T) toolchain {
	t.Helper()
	dir := os.Getenv("SLIPWAY_TEST_TOOLS")
	if dir == "" {
		t.Skip("set SLIPWAY_TEST_TOOLS to a folder with terraform, such as the bundle's bin")
	}
	return toolchain{dir: dir, lockTimeout: lockTimeout}
}

// localRoot writes the root of provider local to a folder and returns it with
// its variables.
func localRoot(t *testing.T, name string) (string, map[string]any) {
	t.Helper()
	root, err := local.Provider{}.Terraform(providers.Deployment{Name: name})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, root.Files))
	return dir, root.Vars
}

func newEnv(t *testing.T, root string, log io.Writer) *step.Env {
	t.Helper()
	return step.NewEnv("r1", "infrastructure/test", step.Dirs{State: t.TempDir(), Terraform: root}, log, io.Discard)
}

func TestTerraformConvergesAndDestroys(t *testing.T) {
	tools := realTerraform(t)
	root, vars := localRoot(t, "demo")
	var log bytes.Buffer
	env := newEnv(t, root, &log)
	in := contract.TerraformInput{Vars: vars}

	first, err := tools.terraform(t.Context(), env, in)
	require.NoError(t, err, log.String())
	require.Equal(t, contract.Infrastructure{
		APIEndpoint: "https://cluster:6443", StorageClass: "local-path", TerraformSerial: first.TerraformSerial,
		Backing: contract.Backing{
			ClusterName: "demo", LoadBalancer: contract.LoadBalancer{Kind: "node"},
			ObjectStore: contract.ObjectStore{Kind: "none"}, Database: contract.Database{Kind: "in-cluster"},
		},
	}, first)
	require.Positive(t, first.TerraformSerial)
	require.Contains(t, log.String(), "Apply complete!", "Terraform's own output is in the log")
	require.NoError(t, verifyTerraform(t.Context(), env, in, first))

	second, err := tools.terraform(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, first, second, "without changes the serial stays")

	// An apply that was killed has left a part only.
	dropResource(t, statePath(env), "storage")
	third, err := tools.terraform(t.Context(), env, in)
	require.NoError(t, err, log.String())
	require.Greater(t, third.TerraformSerial, first.TerraformSerial)
	require.Error(t, verifyTerraform(t.Context(), env, in, first))

	gone, err := tools.terraformDestroy(t.Context(), env, in)
	require.NoError(t, err, log.String())
	require.Equal(t, contract.TerraformDestroyed{Serial: gone.Serial, Changed: true}, gone)
	state, err := readState(statePath(env))
	require.NoError(t, err)
	require.Empty(t, state.Resources)

	again, err := tools.terraformDestroy(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.TerraformDestroyed{Serial: gone.Serial}, again)
}

// dropResource takes a resource out of a state file.
func dropResource(t *testing.T, path, name string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(raw, &doc))
	var kept []any
	for _, r := range doc["resources"].([]any) {
		if r.(map[string]any)["name"] != name {
			kept = append(kept, r)
		}
	}
	require.Less(t, len(kept), len(doc["resources"].([]any)))
	doc["resources"] = kept
	raw, err = json.Marshal(doc)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
}

func TestTerraformSaysWhatIsWrong(t *testing.T) {
	tools := realTerraform(t)
	root, vars := localRoot(t, "demo")
	vars["deployment"] = "Not A Name"
	_, err := tools.terraform(t.Context(), newEnv(t, root, io.Discard), contract.TerraformInput{Vars: vars})
	require.EqualError(t, err, "plan the Terraform root: Invalid value for variable")
	require.Equal(t, fault.Step, fault.ClassOf(err))
}

func TestTerraformRefusesAnotherVersion(t *testing.T) {
	tools := realTerraform(t)
	root, vars := localRoot(t, "demo")
	pin := filepath.Join(root, "versions.tf")
	raw, err := os.ReadFile(pin)
	require.NoError(t, err)
	raw = bytes.ReplaceAll(raw, []byte(">= 1.11.4, < 1.12"), []byte(">= 9"))
	require.NoError(t, os.WriteFile(pin, raw, 0o600))
	_, err = tools.terraform(t.Context(), newEnv(t, root, io.Discard), contract.TerraformInput{Vars: vars})
	require.ErrorContains(t, err, "initialise the Terraform root: Unsupported Terraform Core version")
}

func TestDestroyWithoutState(t *testing.T) {
	out, err := toolchain{dir: "/nowhere"}.terraformDestroy(t.Context(), newEnv(t, "/nowhere", io.Discard), contract.TerraformInput{})
	require.NoError(t, err)
	require.Equal(t, contract.TerraformDestroyed{}, out)
}

func TestStateThatIsNoState(t *testing.T) {
	env := newEnv(t, "/nowhere", io.Discard)
	require.NoError(t, os.MkdirAll(filepath.Dir(statePath(env)), 0o700))
	require.NoError(t, os.WriteFile(statePath(env), []byte("{"), 0o600))
	_, err := toolchain{dir: "/nowhere"}.terraformDestroy(t.Context(), env, contract.TerraformInput{})
	f := &fault.Fault{Code: CodeState}
	require.ErrorIs(t, err, f)
}

func TestLockHolder(t *testing.T) {
	text := "Error: Error acquiring the state lock\n\nLock Info:\n  ID:        f0\n  Who:       root@node\n  Version:   1.11.4\n  Created:   2026-01-02 03:04:05 UTC\n"
	err := badTerraform(CodePlan, "plan", "60s", errorText(text))
	require.EqualError(t, err, "plan: the Terraform state has been locked for more than 60s by root@node since 2026-01-02 03:04:05 UTC")
}

type errorText string

func (e errorText) Error() string { return string(e) }

func TestEveryBadOutputIsNamedInOrder(t *testing.T) {
	out := func(text string) tfexec.OutputMeta { return tfexec.OutputMeta{Value: json.RawMessage(text)} }
	_, err := outputs(map[string]tfexec.OutputMeta{
		"cluster_name": out(`{"name":"demo"}`), "api_endpoint": out(`{}`), "storage_class": out(`7`),
		"load_balancer": out(`{"kind":"node"}`), "database": out(`{"kind":""}`),
	})
	require.Regexp(t, `^output api_endpoint.url is empty
output storage_class: .*
output object_store is missing
output database.kind is empty$`, err.Error())
}

func TestHeadlinesOfBoxedErrors(t *testing.T) {
	text := "exit status 1\n\n╷\n│ Error: First\n│ \n│ on main.tf\n╵\n╷\n│ Error: Second\n╵\n"
	require.Equal(t, "First; Second", headlines(text))
	require.Empty(t, headlines("exit status 1"))
}

func TestOutputsMustBeThoseOfAProvider(t *testing.T) {
	good := map[string]tfexec.OutputMeta{
		"cluster_name":  {Value: json.RawMessage(`{"name":"c"}`)},
		"api_endpoint":  {Value: json.RawMessage(`{"url":"https://c"}`)},
		"storage_class": {Value: json.RawMessage(`{"name":"s"}`)},
		"load_balancer": {Value: json.RawMessage(`{"kind":"cloud"}`)},
		"object_store":  {Value: json.RawMessage(`{"kind":"s3","url":"s3://b"}`)},
		"database":      {Value: json.RawMessage(`{"kind":"managed","host":"h","port":5432}`)},
	}
	out, err := outputs(good)
	require.NoError(t, err)
	require.Equal(t, contract.Database{Kind: "managed", Host: "h", Port: 5432}, out.Database)

	for _, name := range providers.Outputs() {
		bad := map[string]tfexec.OutputMeta{}
		for k, v := range good {
			if k != name {
				bad[k] = v
			}
		}
		_, err := outputs(bad)
		require.ErrorContains(t, err, "output "+name+" is missing")
	}
	good["database"] = tfexec.OutputMeta{Value: json.RawMessage(`"postgres"`)}
	_, err = outputs(good)
	require.ErrorContains(t, err, "output database")
	good["database"] = tfexec.OutputMeta{Value: json.RawMessage(`{"kind":""}`)}
	_, err = outputs(good)
	require.ErrorContains(t, err, "output database.kind is empty")
}

func TestEnvironmentIsFreeOfTerraformSettings(t *testing.T) {
	got := environment([]string{"PATH=/bin", "TF_LOG=TRACE", "TF_VAR_x=1", "HTTPS_PROXY=http://p", "HOME=/home/me"}, "/dir")
	require.Equal(t, map[string]string{"PATH": "/bin", "HTTPS_PROXY": "http://p", "HOME": "/dir", "CHECKPOINT_DISABLE": "1"}, got)
}

func TestPrepareTakesTerraformFilesOnly(t *testing.T) {
	root, to := t.TempDir(), t.TempDir()
	for _, name := range []string{".terraform.lock.hcl", "main.tf", "terraform.tfstate", "other.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
	}
	require.NoError(t, prepare(to, root, map[string]any{"a": 1}))
	var names []string
	entries, err := os.ReadDir(to)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{".terraform.lock.hcl", "main.tf", varFile}, names)
	require.ErrorContains(t, prepare(t.TempDir(), t.TempDir(), nil), "holds no *.tf")
}

func TestReadState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, err := readState(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	s, err := readState(path)
	require.NoError(t, err)
	require.Zero(t, s.Serial)
	require.NoError(t, os.WriteFile(path, []byte(`{"version":4,"serial":7,"resources":[
		{"mode":"managed","type":"terraform_data","name":"a"},
		{"module":"module.m","mode":"data","type":"aws_ami","name":"b"}]}`), 0o600))
	s, err = readState(path)
	require.NoError(t, err)
	require.Equal(t, int64(7), s.Serial)
	require.Equal(t, "terraform_data.a module.m.data.aws_ami.b", strings.Join(s.addresses(), " "))
	require.NoError(t, os.WriteFile(path, []byte(`{"version":3}`), 0o600))
	_, err = readState(path)
	require.ErrorContains(t, err, "version 3 of the state is unknown")
}

// TestOnlyTheLockOfAKilledTerraformIsRemoved: any other one is somebody's.
func TestOnlyTheLockOfAKilledTerraformIsRemoved(t *testing.T) {
	dir := t.TempDir()
	program, argv := filepath.Join(dir, "terraform"), filepath.Join(dir, "argv")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$*\" >>"+argv+"\n"), 0o755))
	tf, err := tfexec.NewTerraform(dir, program)
	require.NoError(t, err)
	env := step.NewEnv("r1", "infrastructure/terraform", step.Dirs{State: dir}, io.Discard, io.Discard)
	taken := errors.New("exit status 1\n\nError: Error acquiring the state lock\n\nLock Info:\n  ID:        8a-b1\n  Path:      x\n")
	unlocked := func() string {
		text, err := os.ReadFile(argv)
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		return string(text)
	}
	for what, c := range map[string]struct {
		killed bool
		err    error
	}{
		"a Terraform that runs":     {false, taken},
		"another error":             {true, errors.New("exit status 1\n\nError: no such bucket\n")},
		"a lock that nobody can id": {true, errors.New("Error acquiring the state lock")},
	} {
		calls := 0
		err := root{Terraform: tf, killed: c.killed}.locked(t.Context(), env, func() error { calls++; return c.err })
		require.ErrorIs(t, err, c.err, what)
		require.Equal(t, 1, calls, what)
		require.Empty(t, unlocked(), what)
	}

	calls := 0
	err = root{Terraform: tf, killed: true}.locked(t.Context(), env, func() error {
		if calls++; calls == 1 {
			return taken
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, calls, "it is tried again")
	require.Equal(t, "force-unlock -no-color -force 8a-b1\n", unlocked())

	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'not yours' >&2\nexit 1\n"), 0o755))
	err = root{Terraform: tf, killed: true}.locked(t.Context(), env, func() error { return taken })
	require.ErrorContains(t, err, "not yours")
}
