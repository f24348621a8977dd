package component

import (
	"slices"
	"time"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

// serverSide is Helm's client with the objects of a chart applied as those of any other
// component. Helm's own patches merge lists by one key, so that a port as TCP and UDP never
// becomes what the chart has, and they leave what cannot be compared with the objects later.
// What the chart no longer has is deleted by the component's list: Helm would also delete what data
// goes with, and what others have by now. Helm makes what its hooks have.
type serverSide struct {
	*helmkube.Client
	apply func([]*unstructured.Unstructured) error
	hook  func([]*unstructured.Unstructured) error // completes what hooks make
	job   func(namespace, name string) error       // waits for a Job, and says what is wrong with its pods
}

// WatchUntilReady implements kube.Interface: it waits for what a hook has made. Helm itself would
// not say why a pod does not start.
func (s serverSide) WatchUntilReady(resources helmkube.ResourceList, timeout time.Duration) error {
	var others helmkube.ResourceList
	for _, i := range resources {
		if i.Mapping == nil || i.Mapping.GroupVersionKind.GroupKind() != batchJob {
			others = append(others, i)
			continue
		}
		if err := s.job(i.Namespace, i.Name); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	return s.Client.WatchUntilReady(others, timeout)
}

//nolint:gochecknoglobals // a constant
var batchJob = schema.GroupKind{Group: "batch", Kind: "Job"}

// Create implements kube.Interface.
func (s serverSide) Create(resources helmkube.ResourceList) (*helmkube.Result, error) {
	if slices.ContainsFunc(resources, made) {
		if err := s.hook(objectsOf(slices.DeleteFunc(slices.Clone(resources), func(i *resource.Info) bool { return !isHook(i) }))); err != nil {
			return nil, err
		}
		return s.Client.Create(resources)
	}
	return &helmkube.Result{Created: resources}, s.apply(objectsOf(resources))
}

// Update implements kube.Interface.
func (s serverSide) Update(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	if slices.ContainsFunc(target, made) {
		return s.Client.Update(original, target, force)
	}
	return &helmkube.Result{Updated: target}, s.apply(objectsOf(target))
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge.
func (s serverSide) UpdateThreeWayMerge(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	return s.Update(original, target, force)
}

// made reports whether Helm has to make an object: one of a hook, which is not there, or one
// to which the API server gives a name.
func made(i *resource.Info) bool {
	o, is := i.Object.(*unstructured.Unstructured)
	return !is || isHook(i) || o.GetName() == ""
}

func isHook(i *resource.Info) bool {
	o, is := i.Object.(*unstructured.Unstructured)
	return is && o.GetAnnotations()[release.HookAnnotation] != ""
}

func objectsOf(resources helmkube.ResourceList) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, i := range resources {
		if o, is := i.Object.(*unstructured.Unstructured); is {
			out = append(out, o)
		}
	}
	return out
}
