package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// What stands for a value that Slipway makes, or takes from the user.
const (
	generated = "<generated>"
	given     = "<given>"
)

// prerequisites shows what is there before any component is.
func (v *linter) prerequisites() {
	for _, p := range []struct {
		kind string
		objs []map[string]any
	}{{"namespaces", v.namespaces()}, {"secrets", v.secrets()}, {"certificates", v.certificates()}, {"configMaps", v.configMaps()}} {
		if len(p.objs) > 0 {
			v.shown = append(v.shown, contract.Rendered{Kind: p.kind, File: platform.File, Objects: p.objs})
		}
	}
}

func (v *linter) object(kind, namespace, name string, more map[string]string, field string, content map[string]any) map[string]any {
	o := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetLabels(labels.Merge(more, kube.Labels(v.Deployment)))
	if field != "" {
		o.Object[field] = content
	}
	return o.Object
}

func (v *linter) namespaces() []map[string]any {
	var out []map[string]any
	for _, n := range append([]platform.Namespace{{Name: kube.SystemNamespace}}, v.release.Namespaces...) {
		out = append(out, v.object("Namespace", "", n.Name, n.Labels, "", nil))
	}
	return out
}

// secrets are without values: where each is from stands in its place.
func (v *linter) secrets() []map[string]any {
	var out []map[string]any
	for _, s := range v.release.Secrets {
		keys := map[string]any{}
		for _, k := range s.Keys {
			if from := v.from(k); from != "" {
				keys[k.Key] = from
			}
		}
		if len(keys) == 0 {
			continue
		}
		o := v.object("Secret", s.Namespace, s.Name, s.Labels, "stringData", keys)
		o["type"] = cmp.Or(s.Type, "Opaque")
		out = append(out, o)
	}
	return out
}

// from says where the value of a key is from; empty: the Secret has no such key.
func (v *linter) from(k platform.SecretKey) string {
	switch {
	case k.Generate == platform.CopyOf:
		return "<copy of " + k.From + ">"
	case k.Generate == platform.Literal:
		return "<literal>"
	case k.Generate == platform.Given && !slices.Contains(v.UserSecrets, k.From):
		return ""
	case k.Generate == platform.Given, k.Give != "" && slices.Contains(v.UserSecrets, k.Give):
		return given
	}
	return generated
}

// certificates are their Secrets, and in every namespace what clients must trust.
func (v *linter) certificates() []map[string]any {
	if len(v.release.Certificates) == 0 {
		return nil
	}
	from := generated
	if v.UserTLS {
		from = given
	}
	var out []map[string]any
	for _, c := range v.release.Certificates {
		namespace, name, _ := strings.Cut(c.Secret, "/")
		o := v.object("Secret", namespace, name, nil, "stringData", map[string]any{"tls.crt": from, "tls.key": from, "ca.crt": from})
		o["type"] = "kubernetes.io/tls"
		out = append(out, o)
	}
	trusted := map[string]any{platform.AuthorityKey: from}
	for _, n := range append([]platform.Namespace{{Name: kube.SystemNamespace}}, v.release.Namespaces...) {
		out = append(out, v.object("ConfigMap", n.Name, platform.AuthorityConfigMap, nil, "data", trusted))
	}
	return out
}

// configMaps are those that are filled in from the configuration.
func (v *linter) configMaps() []map[string]any {
	var out []map[string]any
	for i, m := range v.release.ConfigMaps {
		filled, err := platform.FillTexts(m.Data, v.Fill)
		if err != nil {
			v.wrong("", platform.File, v.release.Line(fmt.Sprintf("configMaps[%d].data", i)), fmt.Errorf("the ConfigMap %s/%s: %w", m.Namespace, m.Name, err))
			continue
		}
		data := map[string]any{}
		for k, value := range filled {
			data[k] = value
		}
		out = append(out, v.object("ConfigMap", m.Namespace, m.Name, nil, "data", data))
	}
	return out
}
