package platform

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEnumsAreOfFields: a field that is renamed takes its values along.
func TestEnumsAreOfFields(t *testing.T) {
	known := map[string]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			if name := jsonName(f); name != "" {
				known[of.Name()+"."+name] = true
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Release]())
	require.Greater(t, len(known), 60)
	for field := range Enums() {
		require.True(t, known[field], field)
	}
}
