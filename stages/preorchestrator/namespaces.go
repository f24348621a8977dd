package preorchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// goneSoon is how long namespaces that are being deleted may take to be gone.
const goneSoon = 3 * time.Minute

func runNamespaces(ctx context.Context, env *step.Env, in contract.NamespacesInput) (contract.Namespaces, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Namespaces{}, err
	}
	identity, err := env.Identity(ctx)
	if err != nil {
		return contract.Namespaces{}, err
	}
	if err := noteNamespaces(ctx, c, env.Deployment, r); err != nil {
		return contract.Namespaces{}, err
	}
	out, err := ensureNamespaces(ctx, c, env.Deployment, identity, r.Namespaces)
	if err == nil {
		err = pullSecrets(ctx, env, c, out.Names, in.Account != "")
	}
	if err == nil {
		err = keepRemoval(ctx, c, env.Deployment, r)
	}
	if err == nil {
		err = begin(ctx, c, env.Deployment, r)
	}
	if err == nil {
		err = checkProgress(ctx, c)
	}
	if err == nil {
		c.WriteProgress(ctx, env.Logger, env.Deployment, env.Run, contract.InProgress, "installing "+r.Name+" "+r.Version)
		env.Progress("%s, %d of them new", counted(theirs(out.Names), "namespace"), theirs(out.Created))
	}
	return out, err
}

// noteNamespaces lists the release's namespaces before they are made, so that after a killed run the next
// one knows which are the deployment's. Before the first install there is no place for the list.
func noteNamespaces(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	system, err := c.Namespace(ctx, kube.SystemNamespace)
	if err != nil || system == nil || kube.DeploymentOf(system.Labels) != deployment || system.DeletionTimestamp != nil {
		return err
	}
	return installed.RecordPrerequisites(ctx, c, deployment, r)
}

// ensureNamespaces makes the namespaces of a release and Slipway's own, which gets the deployment's
// identity unless that is empty. It creates nothing if one of them exists and is not the deployment's.
func ensureNamespaces(ctx context.Context, c *kube.Client, deployment, identity string, want []platform.Namespace) (contract.Namespaces, error) {
	want = append([]platform.Namespace{{Name: kube.SystemNamespace}}, want...)
	var out contract.Namespaces
	var foreign, leaving []string
	have := map[string]metav1.ObjectMeta{}
	for _, ns := range want {
		out.Names = append(out.Names, ns.Name)
		found, err := c.Namespace(ctx, ns.Name)
		if err != nil {
			return contract.Namespaces{}, err
		}
		if found == nil {
			out.Created = append(out.Created, ns.Name)
			continue
		}
		have[ns.Name] = found.ObjectMeta
		switch owner := kube.DeploymentOf(found.Labels); {
		case owner == "":
			foreign = append(foreign, ns.Name+" (without an owner)")
		case owner != deployment:
			foreign = append(foreign, fmt.Sprintf("%s (of the deployment %s)", ns.Name, owner))
		case found.DeletionTimestamp != nil:
			leaving = append(leaving, ns.Name)
			out.Created = append(out.Created, ns.Name)
		}
	}
	if len(foreign) > 0 {
		return contract.Namespaces{}, &fault.Fault{ // whose they are, nobody here knows: no command that removes them
			Code: kube.CodeForeign, Class: fault.Step, Op: "make the platform's namespaces",
			Fix: "use another cluster, or name other namespaces in the platform release, then run the same command again",
			Err: fmt.Errorf("these namespaces exist and do not belong to this deployment: %s; nothing was created", strings.Join(foreign, ", ")),
		}
	}
	if len(leaving) > 0 {
		c.Plan.Change("make namespaces %s, which are being deleted, again", strings.Join(leaving, ", "))
	}
	if err := waitGone(ctx, c, leaving); err != nil {
		return contract.Namespaces{}, err
	}
	for _, ns := range want {
		all := labels.Merge(ns.Labels, kube.Labels(deployment))
		if !slices.Contains(out.Created, ns.Name) && !kube.MadeNamespace(have[ns.Name].Labels, deployment) {
			delete(all, kube.ManagedBy) // it was there before, and stays: see kube.MadeNamespace
		}
		notes := map[string]string{}
		if ns.Name == kube.SystemNamespace && identity != "" && (!c.Plan.Previews() || have[ns.Name].Annotations[kube.IdentityAnnotation] != "") {
			notes[kube.IdentityAnnotation] = identity // a plan does not tell of it: before the first run there is none
		}
		o := applycorev1.Namespace(ns.Name).WithLabels(all).WithAnnotations(notes)
		err := c.Retry(ctx, "apply namespace "+ns.Name, func(ctx context.Context) error {
			_, err := c.Kubernetes.CoreV1().Namespaces().Apply(ctx, o, metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true})
			return err
		})
		if err != nil {
			return contract.Namespaces{}, err
		}
	}
	slices.Sort(out.Names)
	slices.Sort(out.Created)
	return out, nil
}

// pullSecrets lets the pods of namespaces pull with the registry's account, or takes back that
// they do where there is none any more.
func pullSecrets(ctx context.Context, env *step.Env, c *kube.Client, namespaces []string, want bool) error {
	if !env.Existing {
		return nil
	}
	account, err := env.RegistryAccount()
	if err == nil && want != (account != nil) {
		err = errors.New("the account of the registry is not the one that the run began with")
	}
	for _, ns := range namespaces {
		switch {
		case err != nil:
			return err
		case want:
			err = c.SetPullSecret(ctx, env.Deployment, ns, account)
		default:
			err = c.UnsetPullSecret(ctx, env.Deployment, ns)
		}
	}
	return err
}

// keepRemoval keeps in the cluster how the platform is removed, and what precedes its components.
func keepRemoval(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	earlier, _, err := installed.ReadRemoval(ctx, c, deployment)
	if err != nil {
		return err
	}
	if err := installed.RemovalOf(r).Following(earlier).Write(ctx, c, deployment); err != nil {
		return err
	}
	return installed.RecordPrerequisites(ctx, c, deployment, r)
}

// begin keeps in the cluster which release the run brings it to.
func begin(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	has, err := installed.Read(ctx, c)
	if err != nil {
		return err
	}
	return has.Begin(ctx, c, deployment, r)
}

// checkProgress makes a failed run count as a change, so that the next run says that it is in progress
// although it reuses everything.
func checkProgress(ctx context.Context, c *kube.Client) error {
	state, err := c.ReadProgress(ctx)
	if err == nil && (state == contract.Failure || state == contract.Waiting) {
		c.Plan.Change("say that the install goes on")
	}
	return err
}

// waitGone waits for namespaces of ours that an earlier removal left to go.
func waitGone(ctx context.Context, c *kube.Client, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, goneSoon)
	defer cancel()
	for _, name := range names {
		err := c.WaitFor(ctx, "namespace "+name+" to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
			found, err := c.Namespace(ctx, name)
			return err == nil && found == nil, "it is still being deleted", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
