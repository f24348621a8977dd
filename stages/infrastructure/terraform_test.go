package infrastructure

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// realTerraform skips the test unless the environment names a folder with a terraform binary.
func realTerraform(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_TEST_TOOLS") == "" {
		t.Skip("set SLIPWAY_TEST_TOOLS to a folder with terraform, such as the bundle's bin")
	}
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
	return step.NewEnv("r1", "infrastructure/test", step.Dirs{State: t.TempDir(), Terraform: root, Tools: os.Getenv("SLIPWAY_TEST_TOOLS")}, log, io.Discard)
}

func TestTerraformConvergesAndDestroys(t *testing.T) {
	realTerraform(t)
	root, vars := localRoot(t, "demo")
	var log bytes.Buffer
	env := newEnv(t, root, &log)
	in := contract.TerraformInput{Vars: vars}

	first, err := terraform(t.Context(), env, in)
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

	second, err := terraform(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, first, second, "without changes the serial stays")

	// An apply that was killed has left a part only.
	dropResource(t, stateFile(env), "storage")
	third, err := terraform(t.Context(), env, in)
	require.NoError(t, err, log.String())
	require.Greater(t, third.TerraformSerial, first.TerraformSerial)
	require.Error(t, verifyTerraform(t.Context(), env, in, first))

	gone, err := terraformDestroy(t.Context(), env, in)
	require.NoError(t, err, log.String())
	require.Equal(t, contract.TerraformDestroyed{Serial: gone.Serial, Changed: true}, gone)
	state, err := currentState(t.Context(), env)
	require.NoError(t, err)
	require.Empty(t, state.Resources)

	again, err := terraformDestroy(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.TerraformDestroyed{Serial: gone.Serial}, again)
}

// stateFile is where the state of a step is whose store is the volume, and which has no lock.
func stateFile(env *step.Env) string {
	return filepath.Join(env.StateDir, "terraform/000000000000.tfstate")
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
	realTerraform(t)
	root, vars := localRoot(t, "demo")
	vars["deployment"] = "Not A Name"
	_, err := terraform(t.Context(), newEnv(t, root, io.Discard), contract.TerraformInput{Vars: vars})
	require.EqualError(t, err, "plan the Terraform root: Invalid value for variable: The name is lower-case letters, digits and hyphens, starting with a letter.")
	require.Equal(t, fault.Step, fault.ClassOf(err))
}

func TestTerraformRefusesAnotherVersion(t *testing.T) {
	realTerraform(t)
	root, vars := localRoot(t, "demo")
	pin := filepath.Join(root, "versions.tf")
	raw, err := os.ReadFile(pin)
	require.NoError(t, err)
	raw = bytes.ReplaceAll(raw, []byte(">= 1.15.9, < 1.16"), []byte(">= 9"))
	require.NoError(t, os.WriteFile(pin, raw, 0o600))
	_, err = terraform(t.Context(), newEnv(t, root, io.Discard), contract.TerraformInput{Vars: vars})
	require.ErrorContains(t, err, "initialise the Terraform root: Unsupported Terraform Core version")
}

// TestAStateInstallsNoProvider: whoever writes the state has Terraform get no program and ask no server,
// whether it plans, applies or destroys.
func TestAStateInstallsNoProvider(t *testing.T) {
	realTerraform(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var asked atomic.Int32
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	root, vars := localRoot(t, "demo")
	env := newEnv(t, root, io.Discard)
	in := contract.TerraformInput{Vars: vars}
	_, err = terraform(t.Context(), env, in)
	require.NoError(t, err)
	var state map[string]any
	text, err := os.ReadFile(stateFile(env))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &state))
	state["resources"] = append(state["resources"].([]any), map[string]any{
		"mode": "managed", "type": "evil_thing", "name": "x", "provider": `provider["` + listener.Addr().String() + `/evil/evil"]`,
		"instances": []any{map[string]any{"schema_version": 0, "attributes": map[string]any{"id": "1"}}},
	})
	text, err = json.Marshal(state)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(stateFile(env), text, 0o600))

	_, planned := terraform(t.Context(), env, in)
	_, destroyed := terraformDestroy(t.Context(), env, in)
	for _, err := range []error{planned, destroyed} {
		require.ErrorIs(t, err, &fault.Fault{Code: CodeTerraform})
		require.ErrorContains(t, err, "evil/evil")
	}
	require.NoError(t, listener.Close())
	<-served
	require.Zero(t, asked.Load(), "connections to the server that the state names")
}

func TestInstallable(t *testing.T) {
	require.Equal(t, "provider_installation {\n}\n", string(installable(nil)))
	require.Equal(t, "provider_installation {\n  direct {\n    include = [\"registry.terraform.io/hashicorp/aws\", \"registry.terraform.io/hashicorp/tls\", ]\n  }\n}\n",
		string(installable([]byte("# made by terraform init\nprovider \"registry.terraform.io/hashicorp/aws\" {\n  version = \"5.0.0\"\n}\n\nprovider \"registry.terraform.io/hashicorp/tls\" {\n}\n"))))
}

func TestDestroyWithoutState(t *testing.T) {
	out, err := terraformDestroy(t.Context(), newEnv(t, "/nowhere", io.Discard), contract.TerraformInput{})
	require.NoError(t, err)
	require.Equal(t, contract.TerraformDestroyed{}, out)
}

func TestStateThatIsNoState(t *testing.T) {
	env := newEnv(t, "/nowhere", io.Discard)
	require.NoError(t, os.MkdirAll(filepath.Dir(stateFile(env)), 0o700))
	require.NoError(t, os.WriteFile(stateFile(env), []byte("{"), 0o600))
	_, err := terraformDestroy(t.Context(), env, contract.TerraformInput{})
	f := &fault.Fault{Code: store.CodeDamaged}
	require.ErrorIs(t, err, f)
}

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

// TestHeadlines has what Terraform 1.11 prints, in short.
func TestHeadlines(t *testing.T) {
	for text, want := range map[string]string{
		"exit status 1": "",
		"exit status 1\n\n╷\n│ Error: First\n│ \n│   on main.tf line 1:\n│    1: x\n╵\n╷\n│ Error: Second\n╵\n":                     "First; Second",
		"╷\n│ Error: First\n│ \n│   on main.tf\n│     ├────────────────\n│     │ var.size is 3\n│ \n│ It is\n│ too big.\n╵\nmore\n": "First: It is too big.",
		`exit status 1

Error: Resource precondition failed

  on main.tf line 13, in resource "terraform_data" "x":
  13:       condition     = var.size > 5
    ├────────────────
    │ var.size is 3

There is no network 10.0.0.0/24: ask the network team for one, and then name
it.

This was checked by the validation rule at main.tf:4,3-13.

Warning: Deprecated

It is old.

Error: local-exec provisioner error

  with terraform_data.y,

Error running command 'make it': exit status 3.
Output: doing
no room
`: "Resource precondition failed: There is no network 10.0.0.0/24: ask the network team for one, and then name it.; " +
			"local-exec provisioner error: Error running command 'make it': exit status 3. Output: doing no room",
	} {
		require.Equal(t, want, headlines(text), text)
	}
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
	require.Equal(t, []string{".terraform.lock.hcl", ".terraformrc", "main.tf", varFile}, names)
	require.ErrorContains(t, prepare(t.TempDir(), t.TempDir(), nil), "holds no *.tf")
}

func TestParseState(t *testing.T) {
	s, err := parseState("s", []byte(`{"version":4,"serial":7,"resources":[
		{"mode":"managed","type":"terraform_data","name":"a"},
		{"module":"module.m","mode":"data","type":"aws_ami","name":"b"}]}`))
	require.NoError(t, err)
	require.Equal(t, int64(7), s.Serial)
	require.Equal(t, "terraform_data.a module.m.data.aws_ami.b", strings.Join(s.addresses(), " "))
	_, err = parseState("s", []byte(`{"version":3}`))
	require.ErrorContains(t, err, "version 3 of the state is unknown")
}
