package lint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/contract"
)

// ungranted notes what objects of a file ask that a cluster of Slipway's own does not have: it has
// one node, whose runtime is runc, with volumes on its disk. Objects that cannot be read are noted
// elsewhere.
func (v *linter) ungranted(component, file string, objs []*unstructured.Unstructured) {
	for _, o := range objs {
		for _, a := range asks(o) {
			u := contract.Unread{Component: component, File: file, Line: v.lineWith(file, a.word), Err: fmt.Errorf("%s %s %s", o.GetKind(), o.GetName(), a.text)}
			if !listed(v.denied, u) {
				v.denied = append(v.denied, u)
			}
		}
	}
}

// ask is what an object asks in vain, and a word that its file has for that.
type ask struct{ word, text string }

func asks(o *unstructured.Unstructured) []ask {
	switch o.GetKind() {
	case "RuntimeClass":
		if handler, _, _ := unstructured.NestedString(o.Object, "handler"); handler != "runc" {
			return []ask{{handler, fmt.Sprintf("has the handler %s; the node has runc alone, and its pods do not start", handler)}}
		}
	case "PersistentVolumeClaim":
		var claim corev1.PersistentVolumeClaim
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &claim) == nil {
			return claimAsks(claim.Spec)
		}
	case "Service":
		if policy, _, _ := unstructured.NestedString(o.Object, "spec", "ipFamilyPolicy"); policy == string(corev1.IPFamilyPolicyRequireDualStack) {
			return []ask{{policy, "requires IPv4 and IPv6 (" + policy + "); the cluster has IPv4 alone, and refuses it"}}
		}
	}
	return podAsks(o)
}

// podAsks is what the pods of an object ask.
func podAsks(o *unstructured.Unstructured) (all []ask) {
	at := []string{"spec", "template"}
	switch o.GetKind() {
	case "Pod":
		at = nil
	case "CronJob":
		at = []string{"spec", "jobTemplate", "spec", "template"}
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet", "ReplicationController":
	default:
		return nil
	}
	raw, _, _ := unstructured.NestedMap(o.Object, at...)
	var pod corev1.PodTemplateSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &pod) != nil {
		return nil
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for name, quantity := range list {
				word := string(name)
				switch {
				case quantity.IsZero():
				case strings.HasPrefix(word, corev1.ResourceHugePagesPrefix):
					all = append(all, ask{word, "requests " + word + ", of which the node has what the machine of the engine has reserved (vm.nr_hugepages); without them its pods do not start"})
				case strings.Contains(word, "/"):
					all = append(all, ask{word, "requests " + word + ", which the node does not have, and its pods do not start"})
				}
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
		var claim corev1.PersistentVolumeClaim
		if m, ok := t.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &claim) == nil {
			all = append(all, claimAsks(claim.Spec)...)
		}
	}
	slices.SortFunc(all, func(a, b ask) int { return strings.Compare(a.text, b.text) })
	return slices.Compact(all)
}

// claimAsks is what a claim asks of the class that the cluster has by itself.
func claimAsks(claim corev1.PersistentVolumeClaimSpec) []ask {
	if claim.VolumeName != "" || claim.StorageClassName != nil {
		return nil // of a volume or a class of the release's, which may have it
	}
	for _, mode := range claim.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return []ask{{string(mode), fmt.Sprintf("claims a volume with %s; the cluster's have ReadWriteOnce or ReadWriteOncePod, and it gets none", mode)}}
		}
	}
	if claim.VolumeMode != nil && *claim.VolumeMode == corev1.PersistentVolumeBlock {
		return []ask{{"Block", "claims a block device; the cluster's volumes are folders, and it gets none"}}
	}
	return nil
}

// lineWith is the line of a file of the release that has a word; 0 if none or several have.
func (v *linter) lineWith(file, word string) int {
	text, err := bounded.FS(v.release.Files(), file, bounded.Generated)
	if err != nil || bytes.Count(text, []byte(word)) != 1 {
		return 0
	}
	return 1 + bytes.Count(text[:bytes.Index(text, []byte(word))], []byte("\n"))
}
