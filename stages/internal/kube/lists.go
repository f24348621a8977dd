package kube

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ObjectsOf is the name of the Set of the objects that are applied for a component.
func ObjectsOf(component string) string { return component + "-objects" }

// JobsOf is the name of the ConfigMap in SystemNamespace of the Jobs that were made for a
// component: by JobKey, the digest of what each did; empty for one that has not completed.
func JobsOf(component string) string { return component + "-jobs" }

// JobKey is a Job's key in that list.
func JobKey(job metav1.Object) string { return job.GetNamespace() + "." + job.GetName() }

// JobOf is the Job with that key.
func JobOf(key string) Member {
	namespace, name, _ := strings.Cut(key, ".")
	return Member{Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Namespace: namespace, Name: name}
}
