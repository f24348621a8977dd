package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
)

// closeSchemas closes the schemas of a chart and of the charts that it depends on.
func closeSchemas(ch *chart.Chart) error {
	if ch.Schema != nil {
		var err error
		if ch.Schema, err = closedSchema(ch.Schema); err != nil {
			return fmt.Errorf("cannot load values.schema.json: the chart %s: %w", ch.Name(), err)
		}
	}
	for _, d := range ch.Dependencies() {
		if err := closeSchemas(d); err != nil {
			return err
		}
	}
	return nil
}

// closedSchema is a schema without references that lead out of it. The compiler that refuses
// them, not the search for them, is what makes sure of that.
func closedSchema(text []byte) ([]byte, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if compiles(doc) == nil {
		return text, nil
	}
	removeReferences(doc)
	if err := compiles(doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// compiles fails unless a schema can be compiled from itself alone.
func compiles(doc any) error {
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none
	const url = "file:///values.schema.json"  // as Helm names it
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	_, err := c.Compile(url)
	return err
}

// removeReferences removes the references that do not begin with #, the names by which such a
// reference could lead elsewhere, and drafts of JSON schema that nobody knows.
func removeReferences(doc any) {
	switch v := doc.(type) {
	case map[string]any:
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$id", "id"} {
			if ref, is := v[key].(string); is && !strings.HasPrefix(ref, "#") {
				delete(v, key)
			}
		}
		if draft, is := v["$schema"]; is && !strings.Contains(fmt.Sprint(draft), "//json-schema.org/") {
			delete(v, "$schema")
		}
		for _, inner := range v {
			removeReferences(inner)
		}
	case []any:
		for _, inner := range v {
			removeReferences(inner)
		}
	}
}
