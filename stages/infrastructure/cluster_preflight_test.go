package infrastructure

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// theirs is a cluster of somebody else's.
type theirs struct {
	version string
	classes string   // items of a list
	uid     string   // of kube-system
	may     []string // "create secrets"; nil: everything
	has     string   // the deployment in it; empty: none
	id      string   // of that
}

func (c theirs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	forbid := func() {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`)
	}
	switch {
	case r.URL.Path == "/readyz":
		_, _ = io.WriteString(w, "ok")
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"gitVersion":"`+c.version+`"}`)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		if c.may != nil && !slices.Contains(c.may, "get namespaces") {
			forbid()
			return
		}
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+c.uid+`"}}`)
	case r.URL.Path == "/api/v1/namespaces/slipway-system" && c.has == "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
	case r.URL.Path == "/api/v1/namespaces/slipway-system":
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"slipway-system","labels":{"slipway.sh/deployment":"`+c.has+`"},"annotations":{"slipway.sh/identity":"`+c.id+`"},"creationTimestamp":"2026-01-02T03:04:05Z"}}`)
	case r.URL.Path == "/apis/storage.k8s.io/v1/storageclasses":
		_, _ = io.WriteString(w, `{"kind":"StorageClassList","apiVersion":"storage.k8s.io/v1","items":[`+c.classes+`]}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") && r.Method == http.MethodPost:
		text, _ := io.ReadAll(r.Body)
		asked := &authv1.SelfSubjectAccessReview{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		right := asked.Spec.ResourceAttributes
		allowed := c.may == nil || slices.Contains(c.may, right.Verb+" "+right.Resource)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": allowed},
		})
	default:
		forbid()
	}
}

// serve is an environment with access to the cluster.
func (c theirs) serve(t *testing.T) *step.Env {
	t.Helper()
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	env := reaching(t, s.URL)
	env.Existing = true
	return env
}

const (
	fast        = `{"metadata":{"name":"fast"}}`
	defaultSlow = `{"metadata":{"name":"slow","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`
	lent        = `{"metadata":{"name":"lent","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"kubernetes.io/no-provisioner"}`
	defaultToo  = `{"metadata":{"name":"too","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`
)

func TestAClusterThatIsThereAlready(t *testing.T) {
	cluster := theirs{version: "v1.33.2-gke.1", classes: fast + "," + defaultSlow, uid: "u1"}
	for want, class := range map[string]string{"slow": "", "fast": "fast"} {
		env := cluster.serve(t)
		in := contract.ClusterPreflightInput{Kubernetes: "1.35.4", StorageClass: class, Admin: true}
		out, err := clusterPreflight(t.Context(), env, in)
		require.NoError(t, err)
		require.Equal(t, want, out.StorageClass)
		require.Equal(t, "v1.33.2-gke.1", out.Version)
		require.True(t, strings.HasPrefix(out.APIEndpoint, "http://127.0.0.1:"))
		looked, err := step.Unchanged(clusterPreflight)(t.Context(), env, in)
		require.NoError(t, err, "it changes nothing")
		require.Equal(t, out, looked)
	}
}

func TestEverythingThatAClusterLacksIsNamed(t *testing.T) {
	env := theirs{version: "v1.20.0", classes: fast, may: []string{"list secrets", "get secrets", "watch secrets"}}.serve(t)
	_, err := clusterPreflight(t.Context(), env, contract.ClusterPreflightInput{Kubernetes: "1.35.4", Admin: true})
	require.ErrorIs(t, err, &fault.Fault{Code: CodePreflight})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	for _, part := range []string{
		"the cluster is Kubernetes v1.20.0; this Slipway works with 1.32 to 1.36",
		"may not do everything (verb *, resource *)",
		"the credentials may not create, update, patch, delete secrets;",
		"the credentials may not get, list, watch, create, update, patch, delete clusterroles.rbac.authorization.k8s.io;",
		"the credentials may not get pods/log;",
		"the credentials may not list *.*;",
		"no storage class of the cluster is the default one; it has: fast",
	} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "services/proxy")
	_, err = clusterPreflight(t.Context(), env, contract.ClusterPreflightInput{Kubernetes: "1.35.4", Label: true, Proxy: true, Exec: true})
	require.NotContains(t, err.Error(), "do everything", "nobody hands rights on")
	require.ErrorContains(t, err, "the credentials may not patch nodes;")
	require.ErrorContains(t, err, "the credentials may not get services/proxy;")
	require.ErrorContains(t, err, "the credentials may not get, create pods/exec;")
}

func TestVersionsOfAClusterThatIsThereAlready(t *testing.T) {
	for version, ok := range map[string]bool{"v1.31.9": false, "v1.32.0": true, "v1.35.4+k3s1": true, "v1.36.0-rc.1": true, "v1.37.0": false, "v2.1.0": false, "": false} {
		require.Equal(t, ok, len(checkVersion(version, "1.35.4")) == 0, version)
	}
}

func TestStorageOfAClusterThatIsThereAlready(t *testing.T) {
	for says, c := range map[string]struct{ classes, want string }{
		"the cluster has no storage class quick; it has: fast, slow":                                                                         {fast + "," + defaultSlow, "quick"},
		"the cluster has no storage class quick; it has: none":                                                                               {"", "quick"},
		"the cluster has no storage class;":                                                                                                  {"", ""},
		"several storage classes of the cluster are the default one: slow, too; name":                                                        {defaultToo + "," + defaultSlow, ""},
		"the storage class lent has only statically provisioned volumes: its provisioner is kubernetes.io/no-provisioner; name one that has": {fast + "," + lent, ""},
		"the storage class lent has only statically provisioned volumes: its":                                                                {defaultSlow + "," + lent, "lent"},
	} {
		env := theirs{version: "v1.35.0", classes: c.classes}.serve(t)
		_, err := clusterPreflight(t.Context(), env, contract.ClusterPreflightInput{Kubernetes: "1.35.4", StorageClass: c.want})
		require.ErrorIs(t, err, &fault.Fault{Code: CodePreflight})
		require.ErrorContains(t, err, says)
	}
}

func TestAClusterThatDoesNotAnswer(t *testing.T) {
	gone := reaching(t, away)
	gone.Existing = true
	c, err := kube.Connect(gone.Kubeconfig, nil)
	require.NoError(t, err)
	says := func(err error, code fault.Code, text, fix string) {
		t.Helper()
		require.ErrorIs(t, err, &fault.Fault{Code: code})
		require.Equal(t, fault.Preflight, fault.ClassOf(err))
		require.ErrorContains(t, err, text)
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, fix)
	}
	const soonEnough = 300 * time.Millisecond
	_, err = answers(t.Context(), gone, c, soonEnough)
	says(err, CodeNoAnswer, "reach the existing cluster: ", "check that the kubeconfig's server answers from the engine's machine: slipway toolchain, or curl -k "+away+"/version")
	_, _, err = reach(t.Context(), gone, soonEnough, false)
	says(err, CodeNoAnswer, "reach the existing cluster: ", "curl -k "+away)
	client, why, err := reach(t.Context(), gone, soonEnough, true)
	require.NoError(t, err)
	require.Nil(t, client)
	require.Contains(t, why, "connection refused")

	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`)
	}))
	t.Cleanup(refused.Close)
	expired := reaching(t, refused.URL)
	expired.Existing = true
	const renew = "renew the credentials in the kubeconfig; those of a user slipway that has the token of the service account slipway: " +
		`kubectl config set-credentials slipway --token="$(kubectl create token slipway -n kube-system --duration=24h --context=NAME)"`
	_, err = clusterPreflight(t.Context(), expired, contract.ClusterPreflightInput{})
	says(err, CodeNoAnswer, "reach the existing cluster: ask "+refused.URL+" for its version: the server has asked for the client to provide credentials", renew)
	begun := time.Now()
	_, err = platformRemove(t.Context(), expired, contract.RemoveInput{})
	says(err, CodeNoAnswer, "reach the existing cluster: ", renew)
	require.Less(t, time.Since(begun), reachLimit/2, "no wait helps")
}

// TestAnotherCluster: with new credentials the deployment is on the same cluster; with
// those of another cluster nothing is installed to it, and nothing is removed from it.
func TestAnotherCluster(t *testing.T) {
	env := theirs{version: "v1.35.0", classes: defaultSlow, uid: "u1"}.serve(t)
	c, err := kube.Connect(env.Kubeconfig, nil)
	require.NoError(t, err)
	require.NoError(t, sameCluster(t.Context(), env, c, false), "nothing was installed yet")
	p := plan.Verify("cluster")
	require.NoError(t, keepCluster(t.Context(), env.Planned(p), c))
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	require.NoError(t, keepCluster(t.Context(), env, c))
	p = plan.Verify("cluster")
	require.NoError(t, keepCluster(t.Context(), env.Planned(p), c))
	require.NoError(t, p.Err(), "it is known")
	require.NoError(t, sameCluster(t.Context(), env, c, false))
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	known, err := state.ClusterOf(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, &state.Cluster{UID: "u1", Server: c.Endpoint()}, known)

	other := httptest.NewServer(theirs{version: "v1.35.0", classes: defaultSlow, uid: "u2"})
	t.Cleanup(other.Close)
	elsewhere := reaching(t, other.URL)
	elsewhere.Existing, elsewhere.Backend = true, env.Backend
	_, err = clusterPreflight(t.Context(), elsewhere, contract.ClusterPreflightInput{Kubernetes: "1.35.4"})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeOtherCluster})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "deployment demo is on the cluster with which "+c.Endpoint()+" answered (u1), and "+other.URL+" is another one (u2)")
}

// TestANamesake: a deployment of the same name that another state installed is not this one,
// until somebody says so.
func TestANamesake(t *testing.T) {
	env := theirs{version: "v1.35.0", classes: defaultSlow, uid: "u1", has: "demo"}.serve(t)
	in := contract.ClusterPreflightInput{Kubernetes: "1.35.4"}
	_, err := clusterPreflight(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeOtherCluster})
	require.ErrorContains(t, err, "the cluster has a deployment demo since 2026-01-02 03:04:05 UTC that is not the one of this state")
	_, _, err = reach(t.Context(), env, reachLimit, false)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeOtherCluster}, "a destroy leaves it alone")

	in.TakeOwnership = true
	_, err = clusterPreflight(t.Context(), env, in)
	require.NoError(t, err)

	in.TakeOwnership = false
	another := theirs{version: "v1.35.0", classes: defaultSlow, uid: "u1", has: "other"}.serve(t)
	_, err = clusterPreflight(t.Context(), another, in)
	require.NoError(t, err, "infrastructure/ownership refuses it")
}

// TestANamesakeIsKnownByItsIdentity, whether or not the state knows the cluster.
func TestANamesakeIsKnownByItsIdentity(t *testing.T) {
	env := theirs{version: "v1.35.0", classes: defaultSlow, uid: "u1"}.serve(t)
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	own, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	look := func(id string, adopt bool) error {
		t.Helper()
		now := theirs{version: "v1.35.0", classes: defaultSlow, uid: "u1", has: "demo", id: id}.serve(t)
		now.Backend = env.Backend
		_, err := clusterPreflight(t.Context(), now, contract.ClusterPreflightInput{Kubernetes: "1.35.4", TakeOwnership: adopt})
		_, _, removal := reach(t.Context(), now, reachLimit, false)
		if !adopt {
			require.Equal(t, err, removal)
		}
		return err
	}
	other := &fault.Fault{Code: CodeOtherCluster}
	require.NoError(t, look(own.ID, false), "the state knows the cluster no more, but it is the one")
	require.ErrorIs(t, look("", false), other)
	require.ErrorIs(t, look("another", false), other)
	require.NoError(t, state.PutCluster(t.Context(), s, 1, state.Cluster{UID: "u1"}))
	require.NoError(t, look(own.ID, false))
	require.ErrorIs(t, look("", false), other, "nothing says that it is the one")
	require.ErrorIs(t, look("another", false), other, "another state has taken it over since")
	require.NoError(t, look("another", true))
}
