package kube

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// isApplied reports whether a live object is what applying sent, once more, would make of it:
// all that is sent is in it, and FieldManager owns nothing else. Then the server need not try
// it out, which takes seconds for the largest of Argo CD's CustomResourceDefinitions. False
// means only that it cannot tell: for lists whose items are owned one by one, and for values
// that the server stores in another form. Neither authorization nor admission is asked, nor is
// a definition that has come to own a map whole since.
func isApplied(live, sent *unstructured.Unstructured) bool {
	if live.GetAPIVersion() != sent.GetAPIVersion() || live.GetKind() != sent.GetKind() || len(byHand(live)) > 0 {
		return false
	}
	for _, f := range live.GetManagedFields() {
		if f.Manager != FieldManager || f.Operation != metav1.ManagedFieldsOperationApply || f.Subresource != "" || f.FieldsV1 == nil {
			continue
		}
		owned := map[string]any{}
		return f.APIVersion == sent.GetAPIVersion() && json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned) == nil &&
			hasOwned(live.Object, sent.Object, owned, identity())
	}
	return false
}

// identity are the fields that say which object it is, and when the server made it. Nobody
// owns them.
func identity() map[string]any {
	return map[string]any{"apiVersion": nil, "kind": nil, "metadata": map[string]any{"name": nil, "namespace": nil, "creationTimestamp": nil}}
}

// hasOwned reports whether live contains sent, and whether owned, as managedFields have it,
// covers exactly the fields of sent, except those of except.
func hasOwned(live, sent, owned, except map[string]any) bool {
	for key := range owned {
		name, isField := strings.CutPrefix(key, "f:")
		if _, has := sent[name]; key != "." && (!isField || !has) {
			return false
		}
	}
	for name, value := range sent {
		below, excepted := except[name]
		if excepted && below == nil {
			continue
		}
		nested, _ := below.(map[string]any)
		fields, _ := owned["f:"+name].(map[string]any)
		if len(fields) == 0 && nested == nil { // nobody's, or owned whole
			if _, known := owned["f:"+name]; !known || !reflect.DeepEqual(live[name], value) {
				return false
			}
			continue
		}
		part, isMap := value.(map[string]any)
		there, isThere := live[name].(map[string]any)
		if !isMap || !isThere || !hasOwned(there, part, fields, nested) {
			return false
		}
	}
	return true
}
