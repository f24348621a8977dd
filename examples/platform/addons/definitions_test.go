package addons_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// upstream are the modules from which the bundle's definitions come, and where these are.
var upstream = []struct{ tool, module, files string }{
	{"external-secrets", "github.com/external-secrets/external-secrets", "deploy/crds/bundle.yaml"},
	{"cert-manager", "github.com/cert-manager/cert-manager", "deploy/crds/*.yaml"},
	{"traefik", "github.com/traefik/traefik/v3", "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"},
}

// definitions are the schemas of the versions of custom resources in these modules.
func definitions(t *testing.T) map[schema.GroupVersionKind]*spec.Schema {
	t.Helper()
	out := map[schema.GroupVersionKind]*spec.Schema{}
	for _, u := range upstream {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", u.module)
		cmd.Dir = filepath.Join("../../../ci/dev/bundle/tools", u.tool)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		require.NoError(t, err, string(text))
		var m struct{ Dir string }
		require.NoError(t, json.Unmarshal(text, &m))
		files, err := filepath.Glob(filepath.Join(m.Dir, filepath.FromSlash(u.files)))
		require.NoError(t, err)
		require.NotEmpty(t, files, u.module)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, o := range objects(t, string(text)) {
				add(t, out, o)
			}
		}
	}
	return out
}

// add adds the schemas of a definition.
func add(t *testing.T, to map[schema.GroupVersionKind]*spec.Schema, o unstructured.Unstructured) {
	t.Helper()
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	var d struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	for _, v := range d.Spec.Versions {
		require.NotNil(t, v.Schema.OpenAPIV3Schema, o.GetName())
		to[schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}] = v.Schema.OpenAPIV3Schema
	}
}

// check holds an object against its definition: what is misspelt is an error, and so is a value
// of another type.
func check(t *testing.T, o unstructured.Unstructured, s *spec.Schema) error {
	t.Helper()
	body := map[string]any{"spec": o.Object["spec"]} // the others are every object's
	require.Empty(t, unknown(body, s, ""), "%s %s has fields that its definition does not know", o.GetKind(), o.GetName())
	of := s.Properties["spec"]
	return validate.NewSchemaValidator(&of, nil, "spec", strfmt.Default).Validate(body["spec"]).AsError()
}

// unknown are the fields of a value that its schema does not have.
func unknown(v any, s *spec.Schema, at string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		if open, _ := s.Extensions["x-kubernetes-preserve-unknown-fields"].(bool); open {
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			field, ok := s.Properties[k]
			switch more := s.AdditionalProperties; {
			case ok:
				out = append(out, unknown(v[k], &field, at+"."+k)...)
			case more != nil && more.Schema != nil:
				out = append(out, unknown(v[k], more.Schema, at+"."+k)...)
			default:
				out = append(out, at+"."+k)
			}
		}
	case []any:
		for i, e := range v {
			if s.Items != nil && s.Items.Schema != nil {
				out = append(out, unknown(e, s.Items.Schema, fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	}
	return out
}

// TestCustomResourcesFitTheirDefinitions: those of the release, and those for a store in AWS.
func TestCustomResourcesFitTheirDefinitions(t *testing.T) {
	known := definitions(t)
	r := open(t)
	all := everything(t, r)
	text, err := os.ReadFile(filepath.Join(version, "aws", "store.yaml"))
	require.NoError(t, err)
	all["aws"] = objects(t, string(text))
	seen := map[string][]string{}
	for name, objs := range all {
		for _, o := range objs {
			if s := known[o.GroupVersionKind()]; s != nil {
				require.NoError(t, check(t, o, s), "%s: %s %s", name, o.GetKind(), o.GetName())
				seen[name] = append(seen[name], o.GetKind())
			}
		}
	}
	for name, kinds := range map[string][]string{
		"aws": {"ClusterSecretStore", "ExternalSecret"}, "store": {"ClusterSecretStore", "ExternalSecret"}, "dex": {"ClusterSecretStore"},
		"portal": {"ExternalSecret"}, "certificate": {"Issuer", "Certificate"}, "traefik": {"TLSStore"}, "routes": {"IngressRoute", "Middleware"},
	} {
		for _, kind := range kinds {
			require.True(t, slices.Contains(seen[name], kind), "%s: %s", name, kind)
		}
	}

	wrong := all["aws"][0].DeepCopy()
	require.NoError(t, unstructured.SetNestedField(wrong.Object, "SecretManager", "spec", "provider", "aws", "service"))
	require.ErrorContains(t, check(t, *wrong, known[wrong.GroupVersionKind()]), "spec.provider.aws.service", "a value that the definition does not have is found")
	wrong.Object["spec"] = map[string]any{"providr": map[string]any{}}
	require.Equal(t, []string{".spec.providr"}, unknown(map[string]any{"spec": wrong.Object["spec"]}, known[wrong.GroupVersionKind()], ""))
}
