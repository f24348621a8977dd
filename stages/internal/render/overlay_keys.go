package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// bothKeys is a field that items of lists have during a strategic merge. The API server knows an
// item of these lists by two fields, a strategic merge by the first alone: a port as TCP and the
// same port as UDP would be one.
const bothKeys = "both keys"

// keysOf are the two fields by which an item of a list is known; empty if it is known otherwise.
func keysOf(list string, item map[string]any) (first, second string) {
	switch {
	case list == "ports" && item["containerPort"] != nil:
		return "containerPort", "protocol"
	case list == "ports" && item["port"] != nil:
		return "port", "protocol"
	case list == "topologySpreadConstraints" && item["topologyKey"] != nil:
		return "topologyKey", "whenUnsatisfiable"
	}
	return "", ""
}

// twoKeys is the schema of a kind in which bothKeys is what these lists are merged by.
type twoKeys struct{ strategicpatch.LookupPatchMeta }

// LookupPatchMetadataForStruct implements strategicpatch.LookupPatchMeta.
func (s twoKeys) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	below, meta, err := s.LookupPatchMeta.LookupPatchMetadataForStruct(key)
	return twoKeys{below}, meta, err
}

// LookupPatchMetadataForSlice implements strategicpatch.LookupPatchMeta.
func (s twoKeys) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	below, meta, err := s.LookupPatchMeta.LookupPatchMetadataForSlice(key)
	if slices.Contains([]string{"port", "containerPort", "topologyKey"}, meta.GetPatchMergeKey()) {
		meta.SetPatchMergeKey(bothKeys)
	}
	return twoKeys{below}, meta, err
}

// identify gives the items of base and patch the field bothKeys. An item of patch without the
// second field is the only one of base with its first; else that field has its default.
func identify(base, patch map[string]any) {
	had, count := map[string][]string{}, map[string]int{}
	what := func(list string, item map[string]any) (first, second string) {
		a, b := keysOf(list, item)
		if a == "" {
			return "", ""
		}
		second, _ = item[b].(string)
		return fmt.Sprint(list, " ", item[a]), second
	}
	set := func(item map[string]any, first, second string) {
		if second == "" {
			second = string(corev1.ProtocolTCP)
		}
		item[bothKeys] = first + " " + second
	}
	eachItem("", base, func(list string, item map[string]any) {
		if first, second := what(list, item); first != "" {
			set(item, first, second)
			if !slices.Contains(had[first], second) {
				had[first] = append(had[first], second)
			}
		}
	})
	eachItem("", patch, func(list string, item map[string]any) {
		first, _ := what(list, item)
		count[first]++
	})
	eachItem("", patch, func(list string, item map[string]any) {
		first, second := what(list, item)
		if first == "" {
			return
		}
		if second == "" && len(had[first]) == 1 && count[first] == 1 {
			second = had[first][0]
		}
		set(item, first, second)
	})
}

// eachItem calls do for each item that is a map of each list in v, which is the value of field.
func eachItem(field string, v any, do func(list string, item map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			eachItem(key, value, do)
		}
	case []any:
		for _, e := range v {
			if item, ok := e.(map[string]any); ok {
				do(field, item)
			}
			eachItem(field, e, do)
		}
	}
}
