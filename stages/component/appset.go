package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// comparedLimit is how long Argo CD may take to compare what it was asked to, for a plan.
const comparedLimit = 30 * time.Second

// appSet applies a component's ApplicationSets and waits until each has made its
// Applications, and these are Synced and Healthy, at the commits that their repositories
// have now.
func (i *installer) appSet(ctx context.Context) (contract.Component, error) {
	objs, err := i.read(ctx)
	if err != nil {
		return contract.Component{}, err
	}
	isSet := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ApplicationSet" }
	if !slices.ContainsFunc(objs, isSet) {
		return contract.Component{}, i.badManifests(errors.New("its files hold no ApplicationSet"))
	}
	for _, o := range objs {
		if isSet(o) {
			argo.CompleteGenerators(o)
		}
	}
	if err := i.prepare(ctx, objs, kube.Labels(i.env.Deployment)); err != nil {
		return contract.Component{}, err
	}
	out, err := i.apply(ctx, objs)
	if err != nil {
		return out, err
	}
	if !i.client.Plan.Waits() {
		return out, nil
	}
	sets := slices.DeleteFunc(objs, func(o *unstructured.Unstructured) bool { return !isSet(o) })
	if i.client.Plan != nil { // it only looks, once Argo CD has compared them
		limited, cancel := context.WithTimeout(ctx, comparedLimit)
		defer cancel()
		ctx = limited
	}
	asked, waiting := refreshed{}, []string(nil)
	err = i.client.WaitFor(ctx, "the Applications of "+i.component.Name, kube.Poll, func(ctx context.Context) (done bool, _ string, err error) {
		compared, now, err := i.setsWait(ctx, sets, asked)
		waiting = now
		return len(now) == 0 || compared && i.client.Plan != nil, strings.Join(now, "; "), err
	})
	switch {
	case err == nil && len(waiting) > 0:
		err = errors.New(strings.Join(waiting, "; "))
	case i.client.Plan == nil && fault.ClassOf(err) == fault.Timeout:
		err = &fault.Fault{
			Code: argo.CodeLate, Class: fault.Timeout, Op: "bring about the Applications of " + i.component.Name, Err: err,
			Fix: "correct what was seen last, then run the same command again; to look at it: slipway toolchain -- kubectl describe applicationset -n " + fault.Quote(sets[0].GetNamespace()),
		}
	}
	return out, err
}

// refreshed are the ApplicationSets and Applications that Argo CD was asked to look at anew:
// what was seen before is not trusted, since the repositories may have new commits.
type refreshed map[types.UID]bool

// refresh asks for that once.
func (i *installer) refresh(ctx context.Context, asked refreshed, gvr schema.GroupVersionResource, o *unstructured.Unstructured, patch []byte) (first bool, err error) {
	if asked[o.GetUID()] {
		return false, nil
	}
	if err := i.client.Asking().Patch(ctx, "refresh the "+o.GetKind()+" "+o.GetName(), gvr, o.GetNamespace(), o.GetName(), patch); err != nil {
		return true, err
	}
	asked[o.GetUID()] = true
	return true, nil
}

// setsWait says what ApplicationSets still wait for, and whether Argo CD has looked at all
// of them since it was asked to.
func (i *installer) setsWait(ctx context.Context, sets []*unstructured.Unstructured, asked refreshed) (compared bool, waiting []string, err error) {
	compared = true
	for _, o := range sets {
		seen, why, err := i.setWaits(ctx, o, asked)
		if err != nil {
			return false, nil, err
		}
		compared, waiting = compared && seen, append(waiting, why...)
	}
	return compared, waiting, nil
}

// setWaits is setsWait of one ApplicationSet.
func (i *installer) setWaits(ctx context.Context, o *unstructured.Unstructured, asked refreshed) (compared bool, waiting []string, err error) {
	live, err := i.client.Dynamic.Resource(argo.ApplicationSets()).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, nil, err
	}
	first, err := i.refresh(ctx, asked, argo.ApplicationSets(), live, argo.RefreshSet())
	if err != nil {
		return false, nil, err
	}
	if why := setStatus(live); why != "" {
		return true, []string{o.GetName() + ": " + why}, nil
	}
	if first || argo.RefreshingSet(live) {
		return false, []string{o.GetName() + ": its controller has not looked at it since it was asked to"}, nil
	}
	all, err := i.client.List(ctx, argo.Applications(), o.GetNamespace(), "") // where it makes them
	if err != nil {
		return false, nil, err
	}
	compared = true
	found := 0
	for n := range all {
		if !ownedBy(&all[n], live.GetUID()) {
			continue
		}
		found++
		first, err := i.refresh(ctx, asked, argo.Applications(), &all[n], argo.Refresh())
		if err != nil {
			return false, nil, err
		}
		app := argo.Read(&all[n])
		switch why := app.Waiting(""); {
		case first || app.Refreshing:
			compared = false
			waiting = append(waiting, fmt.Sprintf("app %s: Argo CD has not compared it since it was asked to: %s", app.Name, app.Explain()))
		case why != "":
			waiting = append(waiting, fmt.Sprintf("app %s: %s: %s", app.Name, why, app.Explain()))
		}
	}
	if found == 0 && !i.component.Empty {
		waiting = append(waiting, o.GetName()+": it has made no Application yet")
	}
	return compared, waiting, nil
}

// setStatus says why an ApplicationSet has not made its Applications; empty: it has.
func setStatus(o *unstructured.Unstructured) string {
	upToDate := false
	for _, m := range kube.Entries(o, "status", "conditions") {
		switch {
		case m["type"] == "ErrorOccurred" && m["status"] == "True":
			return fmt.Sprint(m["message"])
		case m["type"] == "ResourcesUpToDate":
			upToDate = m["status"] == "True"
		}
	}
	if !upToDate {
		return "its controller has not looked at it yet"
	}
	return ""
}

func ownedBy(o *unstructured.Unstructured, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}
