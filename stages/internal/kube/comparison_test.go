package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestAnObjectThatApplyingLeavesAsItIs is known for one only if nothing else can come of it.
func TestAnObjectThatApplyingLeavesAsItIs(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		t.Helper()
		o := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &o))
		return &unstructured.Unstructured{Object: o}
	}
	const sent = `{apiVersion: v1, kind: Thing, metadata: {name: web, creationTimestamp: null, labels: {a: b}}, spec: {size: 3, list: [{x: 1}], part: {open: true}}}`
	live := func(manager, fields, spec, more string) *unstructured.Unstructured {
		return object(`{apiVersion: v1, kind: Thing, metadata: {name: web, uid: u, generation: 2, creationTimestamp: now, labels: {a: b, theirs: c},
  managedFields: [{manager: ` + manager + `, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: ` + fields + `}` + more + `]}, spec: ` + spec + `, status: {ready: true}}`)
	}
	const (
		owned = `{"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:size": {}, "f:list": {}, "f:part": {".": {}, "f:open": {}}}}`
		spec  = `{size: 3, list: [{x: 1}], part: {open: true, theirs: 1}}`
	)
	for what, c := range map[string]struct {
		live *unstructured.Unstructured
		sent string
		want bool
	}{
		"it is so, and others have added to it":     {live(FieldManager, owned, spec, ""), sent, true},
		"a value is another one":                    {live(FieldManager, owned, `{size: 4, list: [{x: 1}], part: {open: true}}`, ""), sent, false},
		"a list is another one":                     {live(FieldManager, owned, `{size: 3, list: [{x: 1}, {x: 2}], part: {open: true}}`, ""), sent, false},
		"a field is gone":                           {live(FieldManager, owned, `{size: 3, list: [{x: 1}]}`, ""), sent, false},
		"a label is another one":                    {live(FieldManager, owned, spec, ""), `{apiVersion: v1, kind: Thing, metadata: {name: web, labels: {a: c}}, spec: ` + spec + `}`, false},
		"something is no longer sent":               {live(FieldManager, owned, spec, ""), `{apiVersion: v1, kind: Thing, metadata: {name: web, labels: {a: b}}, spec: {size: 3, list: [{x: 1}]}}`, false},
		"something new is sent":                     {live(FieldManager, owned, `{size: 3, list: [{x: 1}], part: {open: true}, more: 1}`, ""), `{apiVersion: v1, kind: Thing, metadata: {name: web, labels: {a: b}}, spec: {size: 3, list: [{x: 1}], part: {open: true}, more: 1}}`, false},
		"nobody applied it":                         {live("other", owned, spec, ""), sent, false},
		"it was applied in another version":         {live(FieldManager, owned, spec, ""), `{apiVersion: v2, kind: Thing, metadata: {name: web}}`, false},
		"somebody edited it":                        {live(FieldManager, owned, spec, `, {manager: kubectl-edit, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:part": {"f:theirs": {}}}}}`), sent, false},
		"items of its list are owned one by one":    {live(FieldManager, `{"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:size": {}, "f:list": {"k:{\"x\":1}": {}}, "f:part": {"f:open": {}}}}`, spec, ""), sent, false},
		"members of its set are owned one by one":   {live(FieldManager, `{"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:size": {}, "f:list": {"v:1": {}}, "f:part": {"f:open": {}}}}`, spec, ""), sent, false},
		"what was owned whole has more":             {live(FieldManager, `{"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:size": {}, "f:list": {}, "f:part": {}}}`, spec, ""), sent, false},
		"a map was sent where there is now a value": {live(FieldManager, owned, `{size: 3, list: [{x: 1}], part: 7}`, ""), sent, false},
	} {
		require.Equal(t, c.want, isApplied(c.live, object(c.sent)), what)
	}
}
