package config

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReferencesAreFoundByType: whatever a later version adds is found.
func TestReferencesAreFoundByType(t *testing.T) {
	type Embedded struct {
		Inherited SecretRef `json:"inherited"`
	}
	type deep struct {
		Embedded
		Token SecretRef `json:"token"`
		Name  string    `json:"name"`
	}
	type later struct {
		Plain   string                       `json:"plain"`
		Nested  struct{ A struct{ B deep } } `json:"nested"`
		Pointer *deep                        `json:"pointer"`
		List    []deep                       `json:"list"`
		Refs    []SecretRef                  `json:"refs"`
		Map     map[string]map[string]deep   `json:"map"`
		hidden  SecretRef
	}
	v := later{
		Plain: "env:NO", Nested: struct{ A struct{ B deep } }{struct{ B deep }{deep{Token: "env:1"}}}, Pointer: &deep{Token: "env:2"},
		List: []deep{{Token: "env:3"}, {Token: "env:4", Name: "four"}}, Refs: []SecretRef{"env:5"},
		Map: map[string]map[string]deep{"a": {"b": {Token: "env:6", Embedded: Embedded{"env:7"}}}}, hidden: "env:NO",
	}
	found := map[string]SecretRef{}
	look := func(setting string, ref SecretRef) SecretRef {
		if ref != "" {
			found[setting] = ref
		}
		return ref
	}
	require.False(t, eachReference("x", reflect.ValueOf(&v), look))
	require.Equal(t, map[string]SecretRef{
		"x.nested.A.B.token": "env:1", "x.pointer.token": "env:2", "x.list.0.token": "env:3", "x.list.four.token": "env:4",
		"x.refs.0": "env:5", "x.map.a.b.token": "env:6", "x.map.a.b.inherited": "env:7",
	}, found)
	require.True(t, eachReference("x", reflect.ValueOf(&v), func(string, SecretRef) SecretRef { return "env:other" }))
	require.Equal(t, SecretRef("env:other"), v.Map["a"]["b"].Token)

	sections := []Section{{Name: "later", Settings: struct {
		Cluster struct {
			Access SecretRef            `json:"access"`
			More   map[string]SecretRef `json:"more"`
		} `json:"cluster"`
	}{}}, {Name: "other", Settings: struct{}{}}}
	c := Default()
	c.sections = map[string]json.RawMessage{"later": json.RawMessage(`{"cluster": {"access": "cmd:x", "more": {"a": "env:A"}, "unknown": 1}}`)}
	require.Equal(t, map[string]SecretRef{"later.cluster.access": "cmd:x", "later.cluster.more.a": "env:A"}, c.References(sections))
}
