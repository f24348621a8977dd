package infrastructure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	// answerLimit is how long an existing cluster may take to answer.
	answerLimit = 20 * time.Second
	// oldest and newest are how many minor versions the cluster may be behind and ahead of
	// what Slipway is built for: Helm supports three behind, kubectl one ahead.
	oldest, newest = 3, 1
)

// clusterPreflight checks an existing cluster and reports everything that is missing at once.
func clusterPreflight(ctx context.Context, env *step.Env, in contract.ClusterPreflightInput) (contract.ClusterPreflight, error) {
	var out contract.ClusterPreflight
	c, err := env.Connect()
	if err != nil {
		return out, err
	}
	out.APIEndpoint = c.Endpoint()
	if out.Version, err = answers(ctx, env, c, answerLimit); err != nil {
		return out, err
	}
	if err := sameCluster(ctx, env, c, in.TakeOwnership); err != nil && !apierrors.IsForbidden(err) { // the rights are judged as a whole
		return out, err
	}
	problems := checkVersion(out.Version, in.Kubernetes)
	missing, err := checkRights(ctx, c, in)
	if err != nil {
		return out, err
	}
	problems = append(problems, missing...)
	class, wrong, err := checkStorage(ctx, c, in.StorageClass)
	if err != nil {
		return out, err
	}
	if problems = append(problems, wrong...); len(problems) > 0 {
		return out, unmet(CodePreflight, "check the cluster", problems)
	}
	out.StorageClass = class
	env.Progress("Kubernetes %s at %s, storage class %s, all rights that are needed", out.Version, out.APIEndpoint, class)
	return out, nil
}

// answers returns the version of an API server that answers within limit and accepts the credentials.
func answers(ctx context.Context, env *step.Env, c *kube.Client, limit time.Duration) (string, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var seen version.Info
	err := c.Retry(limited, "ask "+c.Endpoint()+" for its version", func(ctx context.Context) error {
		text, err := c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &seen)
	})
	if err == nil || ctx.Err() != nil {
		return seen.GitVersion, err
	}
	f := &fault.Fault{Code: CodeNoAnswer, Class: fault.Preflight, Op: "reach the existing cluster", Err: err,
		Fix: "check that the kubeconfig's server answers from the engine's machine: slipway toolchain, or curl -k " + fault.Quote(c.Endpoint()) + "/version"}
	if apierrors.IsUnauthorized(err) {
		f.Fix = "renew the credentials in the kubeconfig; those of a user slipway that has the token of the service account slipway: " +
			`kubectl config set-credentials slipway --token="$(kubectl create token slipway -n kube-system --duration=24h --context=NAME)"` +
			", where NAME is another context of the cluster, with credentials that it knows"
	}
	return "", f
}

// sameCluster refuses a cluster that is not the one on which the deployment was installed,
// and one that has another deployment of this name, unless that one is to be adopted.
func sameCluster(ctx context.Context, env *step.Env, c *kube.Client, adopt bool) error {
	if !env.Existing {
		return nil
	}
	known, now, err := clusters(ctx, env, c)
	switch {
	case err != nil:
		return err
	case known == nil || known.UID == now.UID:
		if adopt {
			return nil
		}
		return noNamesake(ctx, env, c)
	}
	return &fault.Fault{Code: CodeOtherCluster, Class: fault.Preflight, Op: "recognise the cluster",
		Fix: "give the kubeconfig of that cluster; or give this deployment another name: --name",
		Err: fmt.Errorf("deployment %s is on the cluster with which %s answered (%s), and %s is another one (%s)",
			env.Deployment, known.Server, known.UID, now.Server, now.UID)}
}

// noNamesake refuses a cluster that has another deployment of this name.
func noNamesake(ctx context.Context, env *step.Env, c *kube.Client) error {
	own, err := env.Identity(ctx)
	if err != nil {
		return err
	}
	system, err := c.Namespace(ctx, kube.SystemNamespace)
	if err != nil || system == nil || !kube.Ours(system, env.Deployment) || own != "" && system.Annotations[kube.IdentityAnnotation] == own {
		return err
	}
	return &fault.Fault{Code: CodeOtherCluster, Class: fault.Preflight, Op: "recognise the cluster",
		Fix: "give this deployment another name: --name; or work with the state of that one: on its engine, or in its bucket; if that state is lost, make it this one's: slipway install --take-ownership",
		Err: fmt.Errorf("the cluster has a deployment %s since %s that is not the one of this state; nothing was changed",
			env.Deployment, system.GetCreationTimestamp().UTC().Format(time.DateTime)+" UTC")}
}

// clusters returns the deployment's cluster, which may be nil, and the cluster that answers.
func clusters(ctx context.Context, env *step.Env, c *kube.Client) (known *state.Cluster, now state.Cluster, err error) {
	s, err := env.Store(ctx)
	if err != nil {
		return nil, now, err
	}
	if known, err = state.ClusterOf(ctx, s); err != nil {
		return nil, now, err
	}
	uid, err := c.UID(ctx)
	if err != nil {
		return nil, now, err
	}
	return known, state.Cluster{UID: uid, Server: c.Endpoint()}, nil
}

func checkVersion(server, pinned string) []problem {
	want, err := utilversion.ParseGeneric(pinned)
	if err != nil {
		return nil // nothing to compare with
	}
	got, err := utilversion.ParseGeneric(server)
	if err == nil && got.Major() == want.Major() && got.Minor()+oldest >= want.Minor() && got.Minor() <= want.Minor()+newest {
		return nil
	}
	return []problem{{
		fmt.Sprintf("the cluster is Kubernetes %s; this Slipway works with 1.%d to 1.%d", server, want.Minor()-oldest, want.Minor()+newest),
		"use a cluster of one of these versions",
	}}
}

// checkStorage finds the storage class of the volumes: the named one, or the default one.
// One without a provisioner would take volumes that somebody else has made.
func checkStorage(ctx context.Context, c *kube.Client, want string) (string, []problem, error) {
	classes, err := c.List(ctx, storageClasses(), "", "")
	if apierrors.IsForbidden(err) { // which is among the rights that are missing
		return want, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	var names, defaults, static []string
	for _, sc := range classes {
		names = append(names, sc.GetName())
		if sc.Object["provisioner"] == noProvisioner {
			static = append(static, sc.GetName())
		}
		if sc.GetAnnotations()[kube.DefaultClass] == "true" {
			defaults = append(defaults, sc.GetName())
		}
	}
	slices.Sort(names)
	slices.Sort(defaults)
	all := cmp.Or(strings.Join(names, ", "), "none")
	const choose = "name one of these as storageClass in the configuration"
	if want == "" && len(defaults) == 1 {
		want = defaults[0]
	}
	switch {
	case slices.Contains(static, want):
		return "", []problem{{fmt.Sprintf("the storage class %s has only statically provisioned volumes: its provisioner is %s", want, noProvisioner),
			"name one that has a provisioner as storageClass in the configuration, or install a provisioner; the cluster has: " + all}}, nil
	case slices.Contains(names, want):
		return want, nil, nil
	case want != "":
		return "", []problem{{fmt.Sprintf("the cluster has no storage class %s; it has: %s", want, all), choose}}, nil
	case len(names) == 0:
		return "", []problem{{"the cluster has no storage class", "install a provisioner of volumes"}}, nil
	case len(defaults) == 0:
		return "", []problem{{"no storage class of the cluster is the default one; it has: " + all, choose}}, nil
	}
	return "", []problem{{"several storage classes of the cluster are the default one: " + strings.Join(defaults, ", "), choose}}, nil
}

// keepCluster notes which cluster the deployment is on, before anything is made there.
func keepCluster(ctx context.Context, env *step.Env, c *kube.Client) error {
	known, now, err := clusters(ctx, env, c)
	if err != nil || known != nil {
		return err
	}
	if env.Plan != nil {
		env.Plan.Change("note which cluster the deployment is on")
		return nil
	}
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	return state.PutCluster(ctx, s, env.Generation(), now)
}
