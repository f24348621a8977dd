package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// CodeAppSet: the Applications of an ApplicationSet were not Synced and Healthy in time.
const CodeAppSet fault.Code = "CMP-002"

// appSet applies a component's ApplicationSets and waits until each has made its
// Applications, and these are Synced and Healthy.
func (i *installer) appSet(ctx context.Context) (contract.Component, error) {
	objs, err := i.read()
	if err != nil {
		return contract.Component{}, err
	}
	isSet := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ApplicationSet" }
	first := slices.IndexFunc(objs, isSet)
	if first < 0 {
		return contract.Component{}, i.badManifests(errors.New("its files hold no ApplicationSet"))
	}
	if err := i.prepare(ctx, objs, kube.Labels(i.env.Deployment)); err != nil {
		return contract.Component{}, err
	}
	out, err := i.apply(ctx, objs)
	if err != nil {
		return out, err
	}
	look := func(ctx context.Context) (bool, string, error) {
		var waiting []string
		for _, o := range objs {
			if isSet(o) {
				why, err := i.setWaits(ctx, o)
				if err != nil {
					return false, "", err
				}
				waiting = append(waiting, why...)
			}
		}
		return len(waiting) == 0, strings.Join(waiting, "; "), nil
	}
	if dryrun.On(ctx) {
		done, seen, err := look(ctx)
		if err == nil && !done {
			err = errors.New(seen)
		}
		return out, err
	}
	err = i.client.WaitFor(ctx, "the Applications of "+i.component.Name, kube.Poll, look)
	if fault.ClassOf(err) == fault.Timeout {
		err = &fault.Fault{
			Code: CodeAppSet, Class: fault.Timeout, Op: "bring about the Applications of " + i.component.Name, Err: err,
			Fix: "correct what was seen last, then run again: slipway install; to look at it: kubectl describe applicationset -n " + objs[first].GetNamespace(),
		}
	}
	return out, err
}

// setWaits says what an ApplicationSet still waits for.
func (i *installer) setWaits(ctx context.Context, o *unstructured.Unstructured) ([]string, error) {
	live, err := i.client.Dynamic.Resource(argo.ApplicationSets()).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if why := setStatus(live); why != "" {
		return []string{o.GetName() + ": " + why}, nil
	}
	all, err := i.client.List(ctx, argo.Applications(), metav1.NamespaceAll, "")
	if err != nil {
		return nil, err
	}
	var waiting []string
	found := 0
	for n := range all {
		if !ownedBy(&all[n], live.GetUID()) {
			continue
		}
		found++
		app, err := argo.Read(&all[n])
		if err != nil {
			return nil, err
		}
		if why := app.Waiting(""); why != "" {
			waiting = append(waiting, fmt.Sprintf("app %s: %s: %s", app.Name, why, app.Explain()))
		}
	}
	if found == 0 && !i.component.Empty {
		waiting = append(waiting, o.GetName()+": it has made no Application yet")
	}
	return waiting, nil
}

// setStatus says why an ApplicationSet has not made its Applications; empty: it has.
func setStatus(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	upToDate := false
	for _, e := range conditions {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
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
