package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/step"
)

// failing is a terraform that fails at the command in $FAIL, and whose state has
// one resource whatever it does.
const failing = `#!/bin/sh
if test "$1" = version; then echo '{"terraform_version": "1.15.9"}'; exit; fi
if test "$1" = "$FAIL"; then echo 'Error: the moon is full' >&2; exit 1; fi
case "$1" in
plan) exit 2;; # there are changes
output) echo '{}';;
esac
`

func TestTerraformThatFails(t *testing.T) {
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "terraform"), []byte(failing), 0o755))
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.tf"), nil, 0o600))
	install := func(env *step.Env) error {
		_, err := terraform(t.Context(), env, contract.TerraformInput{})
		return err
	}
	destroy := func(env *step.Env) error {
		_, err := terraformDestroy(t.Context(), env, contract.TerraformInput{})
		return err
	}
	for what, c := range map[string]struct {
		fail  string
		run   func(*step.Env) error
		code  fault.Code
		class fault.Class
		says  string
	}{
		"init":            {"init", install, CodeTerraform, fault.Step, "initialise the Terraform root: the moon is full"},
		"plan":            {"plan", install, CodeTerraform, fault.Step, "plan the Terraform root: the moon is full"},
		"apply":           {"apply", install, CodeTerraform, fault.Step, "apply the Terraform root: the moon is full"},
		"output":          {"output", install, CodeOutput, fault.Step, "read the Terraform outputs: the moon is full"},
		"no outputs":      {"", install, CodeOutput, fault.Step, "output cluster_name is missing"},
		"destroy":         {"destroy", destroy, CodeTerraform, fault.Step, "destroy what the Terraform root made: the moon is full"},
		"something stays": {"", destroy, CodeTerraform, fault.Step, "1 resources are left: terraform_data.first"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("FAIL", c.fail)
			env := newEnv(t, root, io.Discard)
			env.ToolsDir = tools
			require.NoError(t, os.MkdirAll(filepath.Dir(stateFile(env)), 0o700))
			require.NoError(t, os.WriteFile(stateFile(env), []byte(`{"version":4,"serial":1,"resources":[{"mode":"managed","type":"terraform_data","name":"first"}]}`), 0o600))
			err := c.run(env)
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			require.Equal(t, c.class, fault.ClassOf(err))
			require.ErrorContains(t, err, c.says)
			if strings.Contains(c.says, "destroy") || what == "something stays" {
				f, _ := errors.AsType[*fault.Fault](err)
				require.NotContains(t, f.Fix, "slipway install")
			}
		})
	}
}

// clusterOf writes the access file of an API server that answers GET requests as
// answers say by path, and forbids all else.
func clusterOf(t *testing.T, answers map[string]string) *step.Env {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if text, ok := answers[r.URL.Path]; ok && r.Method == http.MethodGet {
			_, _ = io.WriteString(w, text)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`)
	}))
	t.Cleanup(s.Close)
	return reaching(t, s.URL)
}

// reaching is an environment whose access file names the API server at url.
func reaching(t *testing.T, url string) *step.Env {
	t.Helper()
	env := newEnv(t, "/nowhere", io.Discard)
	env.Deployment = "demo"
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, url)
	require.NoError(t, os.WriteFile(env.Kubeconfig, []byte(text), 0o600))
	return env
}

// away is the address of an API server that does not answer.
const away = "http://127.0.0.1:1"

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestAClusterThatDoesNotCome(t *testing.T) {
	in := contract.ClusterInput{APIEndpoint: away}
	_, err := cluster(soon(t), reaching(t, away), in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeAPI})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Regexp(t, `waited [0-9.]+m?s for the API at `+away+` to answer with Ready nodes; last seen: GET `+away+`/readyz: `, err.Error())

	_, _, err = reach(t.Context(), reaching(t, away), 300*time.Millisecond, false)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeAPI})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Regexp(t, `^reach the cluster: waited [0-9.]+m?s for the API at `+away, err.Error())
	require.ErrorContains(t, err, "connection refused")
}

func TestStorageThatIsNotThere(t *testing.T) {
	const class = "/apis/storage.k8s.io/v1/storageclasses/fast"
	in := contract.StorageInput{StorageClass: "fast"}
	for fields, says := range map[string]string{
		`"metadata":{"name":"fast"}`: "StorageClass fast is not the default",
		`"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"kubernetes.io/no-provisioner"`: "StorageClass fast has only statically provisioned volumes: its provisioner is kubernetes.io/no-provisioner",
	} {
		_, err := storage(t.Context(), clusterOf(t, map[string]string{class: `{"kind":"StorageClass","apiVersion":"storage.k8s.io/v1",` + fields + `}`}), in)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeStorage})
		require.Equal(t, fault.Step, fault.ClassOf(err))
		require.EqualError(t, err, "use the storage: "+says)
	}
	_, err := storage(soon(t), reaching(t, away), in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeStorage})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Regexp(t, `^use the storage: read the StorageClass fast: waited [0-9.]+m?s for `+away+`: .*; last seen: `, err.Error())
}

func TestALoadBalancerThatCannotBeUsed(t *testing.T) {
	in := contract.LoadBalancerInput{}
	_, err := loadBalancer(t.Context(), clusterOf(t, nil), in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeLoadBalancer})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "use the load balancer: apply Namespace slipway-checks-demo: ")

	_, err = loadBalancer(soon(t), reaching(t, away), in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeLoadBalancer})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Regexp(t, `waited [0-9.]+m?s for `+away+`: .*; last seen: `, err.Error())
}

// TestALoadBalancerThatGivesNoAddress: on a cluster of others nobody may be there to do so.
func TestALoadBalancerThatGivesNoAddress(t *testing.T) {
	for existing, fix := range map[bool]string{
		true:  "see that the cluster gives Services of type LoadBalancer an address, as its cloud's controller or MetalLB does, then run the same command again",
		false: "see that port 18080 of the load balancer is free, then run the same command again",
	} {
		api := kubetest.Serve(t)
		api.Define("v1", "ServiceAccount", true)
		api.Set(t, "/api/v1/namespaces/slipway-checks-demo/serviceaccounts/default", "metadata: {name: default}")
		api.Controller = func(path string, o map[string]any) {
			if strings.Contains(path, "/deployments/") {
				o["status"] = map[string]any{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
			}
		}
		api.Set(t, "/api/v1/namespaces/slipway-checks-demo/events/e", "{type: Warning, reason: SyncLoadBalancerFailed, message: no address is left, involvedObject: {kind: Service, name: loadbalancer-web}}")
		env := reaching(t, api.URL)
		env.Existing = existing
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := loadBalancer(ctx, env, contract.LoadBalancerInput{})
		cancel()
		require.ErrorIs(t, err, &fault.Fault{Code: CodeLoadBalancer})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.ErrorContains(t, err, "an address of the Service slipway-checks-demo/loadbalancer-web; last seen: its load balancer has no address yet: SyncLoadBalancerFailed: no address is left")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Equal(t, fix, f.Fix)
	}
}

// TestALoadBalancerThatNothingUses need not be there.
func TestALoadBalancerThatNothingUses(t *testing.T) {
	in, env := contract.LoadBalancerInput{Unused: true}, clusterOf(t, nil)
	out, err := loadBalancer(t.Context(), env, in)
	require.NoError(t, err)
	require.Empty(t, out)
	require.NoError(t, verifyLoadBalancer(t.Context(), env, in, out))
}

func TestAPlatformThatCannotBeRemoved(t *testing.T) {
	_, err := platformRemove(t.Context(), clusterOf(t, map[string]string{"/readyz": "ok"}), contract.RemoveInput{})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeRemove})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "remove the platform: get secret slipway-system/slipway-removal: you may not")
}

func TestWhatIsLeftIsNamed(t *testing.T) {
	api := kubetest.Serve(t)
	for _, name := range []string{"kube-system", "somebody-elses"} {
		api.Set(t, "/api/v1/namespaces/"+name, "metadata: {name: "+name+"}")
		api.Set(t, "/api/v1/namespaces/"+name+"/services/site", "{metadata: {name: site, namespace: "+name+"}, spec: {type: LoadBalancer}}")
	}
	api.Set(t, "/api/v1/namespaces/web", "metadata: {name: web, "+byUs+"}")
	api.Set(t, "/api/v1/namespaces/web/services/site", "{metadata: {name: site, namespace: web}, spec: {type: LoadBalancer}}")
	_, err := platformInventory(t.Context(), reaching(t, api.URL), contract.InventoryInput{MustBeEmpty: true})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeRemove})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.EqualError(t, err, "see that nothing is left: left: Namespace web, Service web/site")
}
