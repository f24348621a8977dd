package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/lint"
	"github.com/slipway-sh/slipway/stages/step"
)

const looks = 8

type finder struct {
	build lint.BuildTree // of the apps
}

// ownership checks that the release may follow the installed one, and looks for every object of the
// platform before any is made, except for those that Kubernetes makes in every namespace. If an
// object belongs to somebody else, it takes it over if the input allows that, and otherwise fails.
func (f finder) ownership(ctx context.Context, env *step.Env, in contract.OwnershipInput) (contract.Ownership, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Ownership{}, err
	}
	has, err := installed.Read(ctx, c)
	if err == nil {
		err = has.Check(r, installed.How{Upgrade: in.Upgrade, Change: in.Change})
	}
	if err != nil {
		return contract.Ownership{}, err
	}
	e := &expected{client: c, env: env, release: r}
	if err := e.findNamespaces(ctx); err != nil {
		return contract.Ownership{}, err
	}
	objs, err := e.objects(ctx, in)
	if err != nil {
		return contract.Ownership{}, checkFault(kube.CodeForeign, "look for what the platform is made of", "correct the platform release, then run the same command again", err)
	}
	missing, err := checkKinds(ctx, c, objs)
	if err == nil && len(missing) > 0 {
		err = unmet(CodePreflight, "check the rights over what the platform is made of", missing)
	}
	if err != nil {
		return contract.Ownership{}, err
	}
	ofApps, err := e.apps(ctx, in.Apps, f.build)
	if err != nil {
		return contract.Ownership{}, checkFault(kube.CodeForeign, "look for what the apps are made of", "correct the platform release, then run the same command again", err)
	}
	foreign, err := foreignAmong(ctx, c, objs, e.owns)
	if err != nil {
		return contract.Ownership{}, checkFault(kube.CodeForeign, "look for what the platform is made of", "run the same command again", err)
	}
	inWay, err := foreignAmong(ctx, c, ofApps, e.brought)
	if err != nil {
		return contract.Ownership{}, checkFault(kube.CodeForeign, "look for what the apps are made of", "run the same command again", err)
	}
	foreign = append(foreign, inWay...)
	out := contract.Ownership{Objects: len(objs) + len(ofApps)}
	if err := othersSystem(foreign); err != nil {
		return out, err
	}
	if len(foreign) > 0 && !in.TakeOwnership {
		return out, isForeign(env.Deployment, foreign, in)
	}
	for i := range foreign {
		if err := adopt(ctx, c, env.Deployment, &foreign[i]); err != nil {
			return out, err
		}
		out.TakenOver = append(out.TakenOver, whose(env.Deployment, &foreign[i]))
	}
	if len(out.TakenOver) > 0 {
		env.Progress("took over %s", strings.Join(out.TakenOver, ", "))
	}
	env.Progress("%d objects, none owned by others", out.Objects)
	return out, nil
}

// foreignAmong are those of members that are there and not the deployment's own.
func foreignAmong(ctx context.Context, c *kube.Client, members []kube.Member, own func(*unstructured.Unstructured) bool) ([]unstructured.Unstructured, error) {
	served := map[schema.GroupVersionKind]bool{} // a kind that is not, the platform defines itself
	found := make([]*unstructured.Unstructured, len(members))
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(looks)
	for i, m := range members {
		if _, asked := served[m.Kind]; !asked {
			_, err := c.ResourceOf(ctx, m.Kind)
			if err != nil && !meta.IsNoMatchError(err) {
				return nil, errors.Join(err, group.Wait())
			}
			served[m.Kind] = err == nil
		}
		if !served[m.Kind] || m.Name == "" || installed.OfEveryNamespace(m) {
			continue
		}
		group.Go(func() (err error) {
			found[i], err = c.Live(looking, m)
			return err
		})
	}
	err := group.Wait()
	var out []unstructured.Unstructured
	for _, live := range found {
		if live != nil && !own(live) {
			out = append(out, *live)
		}
	}
	return out, err
}

// isForeign names what is somebody else's, to a run with that input.
func isForeign(deployment string, objs []unstructured.Unstructured, in contract.OwnershipInput) error {
	again := "slipway install"
	switch {
	case in.Backup != "":
		again = "slipway rollback --backup " + fault.Quote(in.Backup)
	case in.Upgrade:
		again = "slipway upgrade"
	}
	var names []string
	for i := range objs {
		if name := whose(deployment, &objs[i]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return &fault.Fault{
		Code: kube.CodeForeign, Class: fault.Preflight, Op: "see that nothing is in the platform's way",
		Err: fmt.Errorf("these are in the cluster and do not belong to this deployment: %s; nothing was created", strings.Join(names, ", ")),
		Fix: "rename them in the platform release, or ask their owners; to take them over on purpose: " + again + " --take-ownership",
	}
}

// othersSystem refuses Slipway's own namespace of another deployment, also to who takes
// over the rest: a cluster has one.
func othersSystem(objs []unstructured.Unstructured) error {
	for i := range objs {
		o := &objs[i]
		owner := kube.DeploymentOf(o.GetLabels())
		if o.GetKind() == "Namespace" && o.GetName() == kube.SystemNamespace && owner != "" {
			return &fault.Fault{
				Code: kube.CodeForeign, Class: fault.Preflight, Op: "see that nothing is in the platform's way",
				Err: fmt.Errorf("the cluster has the deployment %s, whose namespace %s cannot be taken over; nothing was created", owner, kube.SystemNamespace),
				Fix: "install that deployment: --name " + fault.Quote(owner) + "; or remove it first: slipway destroy --name " + fault.Quote(owner),
			}
		}
	}
	return nil
}

// whose is "ConfigMap shop/settings (without an owner)".
func whose(deployment string, o *unstructured.Unstructured) string {
	what := kube.MemberOf(o).String()
	switch owner := kube.DeploymentOf(o.GetLabels()); owner {
	case "":
		return what + " (without an owner)"
	case deployment:
		return what + " (with this deployment's label, and in none of its lists)"
	default:
		return what + " (of the deployment " + owner + ")"
	}
}

// adopt gives an object the deployment's label. A namespace gets no more, and loses what
// says that Slipway made it, for another deployment: see kube.MadeNamespace.
func adopt(ctx context.Context, c *kube.Client, deployment string, o *unstructured.Unstructured) error {
	labels := map[string]any{kube.DeploymentLabel: deployment}
	if o.GetKind() == "Namespace" && o.GetLabels()[kube.ManagedBy] == kube.FieldManager && kube.DeploymentOf(o.GetLabels()) != deployment {
		labels[kube.ManagedBy] = nil
	}
	return c.Label(ctx, o, labels)
}
