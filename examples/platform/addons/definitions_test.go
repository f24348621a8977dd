package addons_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// upstream are the modules from which the bundle's definitions come, and where these are.
var upstream = []struct{ tool, module, files string }{
	{"external-secrets", "github.com/external-secrets/external-secrets", "deploy/crds/bundle.yaml"},
	{"cert-manager", "github.com/cert-manager/cert-manager", "deploy/crds/*.yaml"},
	{"traefik", "github.com/traefik/traefik/v3", "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"},
}

// definitions are the versions of custom resources in these modules.
func definitions(t *testing.T) map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps{}
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
				var d apiextensionsv1.CustomResourceDefinition
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d))
				for _, v := range d.Spec.Versions {
					out[schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}] = v.Schema.OpenAPIV3Schema
				}
			}
		}
	}
	return out
}

// check holds an object against its definition: what is misspelt is an error, and so is a value
// of another type.
func check(t *testing.T, o unstructured.Unstructured, v1 *apiextensionsv1.JSONSchemaProps) error {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, &internal, nil))
	structural, err := structuralschema.NewStructural(&internal)
	require.NoError(t, err)
	unknown := pruning.PruneWithOptions(o.DeepCopy().Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	require.Empty(t, unknown, "%s %s has fields that its definition does not know", o.GetKind(), o.GetName())
	validator, _, err := validation.NewSchemaValidator(&internal)
	require.NoError(t, err)
	return validation.ValidateCustomResource(nil, o.Object, validator).ToAggregate()
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
}
