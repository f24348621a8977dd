package render

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/imageref"
)

// eachImage calls do with the reference of every image that an object's pods run, and puts
// what it returns in its place. The pods may be anywhere in the object: a custom
// resource has them where it likes.
func eachImage(o *unstructured.Unstructured, do func(ref string) string) {
	switch o.GetKind() {
	case "ConfigMap", "Secret", "CustomResourceDefinition", "Application", "ApplicationSet": // texts, schemas and values
		return
	}
	eachField(o.Object, func(field string, value any) {
		switch field {
		case "initContainers", "containers", "ephemeralContainers":
			for _, c := range mappings(value) {
				set(c, "image", do)
			}
		case "volumes":
			for _, volume := range mappings(value) {
				if image, ok := volume["image"].(map[string]any); ok {
					set(image, "reference", do)
				}
			}
		}
	})
}

// eachField calls do with each field of each mapping in v, and its value.
func eachField(v any, do func(field string, value any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachField(e, do)
		}
	case map[string]any:
		for field, value := range v {
			do(field, value)
			eachField(value, do)
		}
	}
}

// mappings are the elements of a list that are mappings; none if v is no list.
func mappings(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func set(m map[string]any, field string, do func(string) string) {
	if ref, ok := m[field].(string); ok && ref != "" {
		m[field] = do(ref)
	}
}

// Images are the references of the images that objs run, sorted.
func Images(objs []*unstructured.Unstructured) []string {
	seen := map[string]bool{}
	for _, o := range objs {
		eachImage(o, func(ref string) string {
			seen[ref] = true
			return ref
		})
	}
	return slices.Sorted(maps.Keys(seen))
}

// SetImages replaces references of images by those in refs: of an image that is named as
// the bundle names it, by the short name or slipway.local/NAME, and of what refs has under
// its whole reference, as imageref.Normal writes it. What is not in refs stays as it is:
// redis:8 is the one of docker.io, whatever the bundle's redis is.
func SetImages(objs []*unstructured.Unstructured, refs map[string]string) {
	for _, o := range objs {
		eachImage(o, func(ref string) string {
			if own := refs[shortName(ref)]; own != "" {
				return own
			}
			if normal, err := imageref.Normal(ref); err == nil && refs[normal] != "" {
				return refs[normal]
			}
			return ref
		})
	}
}

// shortName is the short name that a reference is, or has in the bundle; empty if it is
// any other reference.
func shortName(ref string) string {
	name := ref
	if in, ok := strings.CutPrefix(ref, imageref.Own+"/"); ok {
		name, _, _ = strings.Cut(in, "@")
		name, _, _ = strings.Cut(name, ":")
	}
	if !imageref.IsShort(name) {
		return ""
	}
	return name
}
