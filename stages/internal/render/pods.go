package render

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// podPath is where an object of a kind has its pod; nil: it has none.
func podPath(kind string) []string {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
		return []string{"spec", "template"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	case "Pod":
		return []string{}
	}
	return nil
}

// Pod returns the pod template of an object, nil if it has none. Changes to it are
// changes to the object.
func Pod(o *unstructured.Unstructured) map[string]any {
	at := podPath(o.GetKind())
	if at == nil {
		return nil
	}
	template, _, _ := unstructured.NestedFieldNoCopy(o.Object, at...)
	m, _ := template.(map[string]any)
	if _, has := m["spec"].(map[string]any); !has {
		return nil
	}
	return m
}

// AddHosts makes the pods of objs resolve hosts to addresses.
func AddHosts(objs []*unstructured.Unstructured, hosts map[string]string) {
	if len(hosts) == 0 {
		return
	}
	var aliases []any
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		aliases = append(aliases, map[string]any{"ip": hosts[host], "hostnames": []any{host}})
	}
	for _, o := range objs {
		if p := Pod(o); p != nil {
			spec := p["spec"].(map[string]any)
			own, _ := spec["hostAliases"].([]any)
			spec["hostAliases"] = append(slices.Clone(own), aliases...)
		}
	}
}

// AddPullSecret has the pods of objs that run one of the images in refs pull with a Secret of
// that name in their namespace.
func AddPullSecret(objs []*unstructured.Unstructured, refs map[string]string, name string) {
	own := slices.Collect(maps.Values(refs))
	for _, o := range objs {
		p := Pod(o)
		if p == nil || !slices.ContainsFunc(Images([]*unstructured.Unstructured{o}), func(ref string) bool { return slices.Contains(own, ref) }) {
			continue
		}
		spec := p["spec"].(map[string]any)
		secrets, _ := spec["imagePullSecrets"].([]any)
		if !slices.ContainsFunc(secrets, func(s any) bool { m, _ := s.(map[string]any); return m["name"] == name }) {
			spec["imagePullSecrets"] = append(slices.Clone(secrets), map[string]any{"name": name})
		}
	}
}

// Uses are the ConfigMaps and Secrets that the pods of an object read, "ConfigMap/name",
// sorted.
func Uses(o *unstructured.Unstructured) []string {
	kinds := map[string]string{
		"configMap": "ConfigMap", "configMapRef": "ConfigMap", "configMapKeyRef": "ConfigMap",
		"secret": "Secret", "secretRef": "Secret", "secretKeyRef": "Secret",
	}
	seen := map[string]bool{}
	eachField(Pod(o)["spec"], func(field string, value any) {
		ref, _ := value.(map[string]any)
		if name, ok := cmp.Or(ref["name"], ref["secretName"]).(string); ok && kinds[field] != "" {
			seen[kinds[field]+"/"+name] = true
		}
	})
	return slices.Sorted(maps.Keys(seen))
}

// ConfigAnnotation is the annotation of pods that holds the digest of the configuration that
// they have read when they started.
const ConfigAnnotation = "slipway.sh/config"

// Annotate gives the pods of an object an annotation.
func Annotate(o *unstructured.Unstructured, name, value string) error {
	at := podPath(o.GetKind())
	if len(at) == 0 { // a Pod is not started again
		return nil
	}
	err := unstructured.SetNestedField(o.Object, value, append(slices.Clone(at), "metadata", "annotations", name)...)
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// HideSecrets calls hide with each value of the Secrets that the pods of objects read, but for
// what a log may name.
func HideSecrets(ctx context.Context, c *kube.Client, objs []*unstructured.Unstructured, hide func(string)) error {
	for _, o := range objs {
		err := EachSecret(ctx, c, o, func(key, value string) {
			if !harmless(key) {
				hide(value)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EachSecret calls do with each value of the Secrets that the pods of an object read, and its key.
func EachSecret(ctx context.Context, c *kube.Client, o *unstructured.Unstructured, do func(key, value string)) error {
	for _, use := range Uses(o) {
		name, is := strings.CutPrefix(use, "Secret/")
		if !is {
			continue
		}
		secret, err := c.Secret(ctx, o.GetNamespace(), name)
		if err != nil {
			return err
		}
		if secret == nil {
			continue
		}
		for key, value := range secret.Data {
			do(key, string(value))
		}
	}
	return nil
}

// harmless reports whether a key of a Secret says who or where somebody is.
func harmless(key string) bool {
	key = strings.ToLower(key)
	return !strings.Contains(key, "pass") && slices.ContainsFunc([]string{"user", "email", "name", "database", "db", "host", "port"}, func(end string) bool { return strings.HasSuffix(key, end) })
}
