package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// ungranted notes what objects of a file ask that a cluster of Slipway's own does not have: it has
// one node, with volumes on its disk. Objects that cannot be read are noted elsewhere.
func (v *linter) ungranted(component, file string, objs []*unstructured.Unstructured) {
	for _, o := range objs {
		for _, a := range asks(o) {
			note(&v.denied, contract.Unread{Component: component, File: file, Line: lineWith(v.release.Files(), file, a.word), Err: fmt.Errorf("%s %s %s", o.GetKind(), o.GetName(), a.text)})
		}
	}
}

// ask is what an object asks in vain, and a word that its file has for that.
type ask struct{ word, text string }

func asks(o *unstructured.Unstructured) []ask {
	if o.GetKind() != "PersistentVolumeClaim" {
		return podAsks(o)
	}
	return claimAsks(o.Object)
}

// podAsks is what the pods of an object ask.
func podAsks(o *unstructured.Unstructured) (all []ask) {
	var pod corev1.PodTemplateSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(render.Pod(o), &pod) != nil {
		return nil
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name, quantity := range c.Resources.Limits { // such a resource has a limit, which is what is requested
			if word := string(name); strings.Contains(word, "/") && !quantity.IsZero() {
				all = append(all, ask{word, "requests " + word + ", which the node does not have, and its pods do not start"})
			}
		}
	}
	replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && replicas > 1 {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if s, err := metav1.LabelSelectorAsSelector(term.LabelSelector); err == nil && s.Matches(labels.Set(pod.Labels)) {
				all = append(all, ask{"podAntiAffinity", fmt.Sprintf("wants each of its %d pods on another node (podAntiAffinity); there is one node, and %d do not start", replicas, replicas-1)})
				break
			}
		}
	}
	templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		claim, _ := t.(map[string]any)
		all = append(all, claimAsks(claim)...)
	}
	slices.SortFunc(all, func(a, b ask) int { return strings.Compare(a.text, b.text) })
	return slices.Compact(all)
}

// claimAsks is what a claim asks of the class that the cluster has by itself; another class may
// have it.
func claimAsks(o map[string]any) []ask {
	var claim corev1.PersistentVolumeClaim
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o, &claim) != nil || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName != nil {
		return nil
	}
	for _, mode := range claim.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return []ask{{string(mode), fmt.Sprintf("claims a volume with %s; the cluster's have ReadWriteOnce or ReadWriteOncePod, and it gets none", mode)}}
		}
	}
	return nil
}

// lineWith is the line of a file that has a word; 0 if none or several have.
func lineWith(files fs.FS, name, word string) int {
	text, err := bounded.FS(files, name, bounded.Generated)
	if err != nil || bytes.Count(text, []byte(word)) != 1 {
		return 0
	}
	return 1 + bytes.Count(text[:bytes.Index(text, []byte(word))], []byte("\n"))
}
