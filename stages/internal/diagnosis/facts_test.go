package diagnosis

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
)

// now returns when the facts of testdata were read.
func now() time.Time { return time.Date(2026, 1, 2, 14, 10, 0, 0, time.UTC) }

// load reads the facts of testdata/base.yaml and of a case. An object of the case
// replaces that of the same name. Besides objects there are documents of the
// kinds Log (of a pod's container), Failed (a step) and Gone (an object of base
// that is not there).
func load(t *testing.T, name string) *Facts {
	t.Helper()
	f := &Facts{
		Now: now(), Apps: []argo.Application{}, Pods: []corev1.Pod{}, Nodes: []corev1.Node{}, Claims: []corev1.PersistentVolumeClaim{},
		Classes: []storagev1.StorageClass{}, Jobs: []batchv1.Job{}, Events: []corev1.Event{}, Logs: map[string][]string{},
	}
	for _, file := range []string{"base", name} {
		text, err := os.ReadFile("testdata/" + file + ".yaml")
		require.NoError(t, err)
		for _, doc := range strings.Split(string(text), "\n---\n") {
			f.add(t, []byte(doc))
		}
	}
	return f
}

func (f *Facts) add(t *testing.T, doc []byte) {
	t.Helper()
	var head struct {
		Kind, Namespace, Pod, Stage, Step, Error, Of, Name string
		Lines                                              []string
	}
	require.NoError(t, yaml.Unmarshal(doc, &head))
	switch head.Kind {
	case "Node":
		put(t, &f.Nodes, doc)
	case "Pod":
		put(t, &f.Pods, doc)
	case "PersistentVolumeClaim":
		put(t, &f.Claims, doc)
	case "StorageClass":
		put(t, &f.Classes, doc)
	case "Job":
		put(t, &f.Jobs, doc)
	case "Event":
		put(t, &f.Events, doc)
	case "Application":
		var o map[string]any
		require.NoError(t, yaml.Unmarshal(doc, &o))
		a := argo.Read(&unstructured.Unstructured{Object: o})
		for i := range f.Apps {
			if f.Apps[i].Name == a.Name {
				f.Apps[i] = a
				return
			}
		}
		f.Apps = append(f.Apps, a)
	case "Log":
		f.Logs[head.Namespace+"/"+head.Pod] = head.Lines
	case "Failed":
		f.Scope.Failed = append(f.Scope.Failed, contract.FailedStep{Stage: head.Stage, Step: head.Step, Error: head.Error})
	case "Gone":
		require.Equal(t, "Pod", head.Of)
		for i, p := range f.Pods {
			if p.Namespace == head.Namespace && p.Name == head.Name {
				f.Pods = append(f.Pods[:i], f.Pods[i+1:]...)
				return
			}
		}
		t.Fatalf("there is no pod %s/%s to be gone", head.Namespace, head.Name)
	default:
		t.Fatalf("kind %q", head.Kind)
	}
}

// put adds an object to a list, in place of one of the same name.
func put[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, list *[]T, doc []byte) {
	t.Helper()
	var o T
	require.NoError(t, yaml.UnmarshalStrict(doc, &o), string(doc))
	id := func(p P) string { return fmt.Sprintf("%s/%s", p.GetNamespace(), p.GetName()) }
	for i := range *list {
		if id(&(*list)[i]) == id(&o) {
			(*list)[i] = o
			return
		}
	}
	*list = append(*list, o)
}
