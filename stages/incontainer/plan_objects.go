package incontainer

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// maker makes the parts of a plan that are about objects.
type maker struct {
	Seen *plan.Plan
	// Salt keeps the digest of a short secret from being guessed at; without one, no digest
	// of a secret is shown.
	Salt []byte

	labels  map[string]string
	secrets redact.Secrets
}

// Fill fills in what the steps told of objects, Jobs, Terraform and Git.
func (m *maker) Fill(out *contract.Plan) {
	m.labels = m.Seen.Labels()
	objects := m.Seen.Objects()
	for _, o := range objects {
		m.learn(o.Before)
		m.learn(o.After)
	}
	var before, after []*unstructured.Unstructured
	for _, o := range objects {
		if helper(o.Before) || helper(o.After) {
			continue
		}
		if o.Before != nil {
			u := &unstructured.Unstructured{Object: o.Before}
			out.Basis.Objects[kube.MemberOf(u).String()] = m.digest(o.Before)
			before = append(before, u)
		}
		if o.After != nil {
			after = append(after, &unstructured.Unstructured{Object: o.After})
		}
		planned, changes := m.object(o)
		switch {
		case o.Unknown && o.After != nil:
			out.Unknown = append(out.Unknown, contract.PlannedUnknown{What: planned.Name, Why: o.Why})
		case changes:
			out.Changes = append(out.Changes, planned)
		default:
			out.Unchanged++
		}
	}
	out.Changes = append(out.Changes, images(render.Images(before), render.Images(after))...)
	for _, n := range m.Seen.Notes() {
		switch v := n.(type) {
		case contract.PlannedChange:
			out.Changes = append(out.Changes, v)
		case contract.PlannedUnknown:
			out.Unknown = append(out.Unknown, v)
		case contract.PlannedStyle:
			out.Style = string(v)
		case contract.PlanBasis:
			out.Basis.Git, out.Basis.Terraform = cmp.Or(v.Git, out.Basis.Git), cmp.Or(v.Terraform, out.Basis.Terraform)
		}
	}
	out.Sort()
	slices.SortFunc(out.Unknown, func(a, b contract.PlannedUnknown) int { return strings.Compare(a.What+a.Why, b.What+b.Why) })
	// What is empty is a list in JSON.
	out.Configuration, out.Later = append([]contract.Difference{}, out.Configuration...), append([]string{}, out.Later...)
	out.Changes = append([]contract.PlannedChange{}, out.Changes...)
	out.Unknown, out.Refused = append([]contract.PlannedUnknown{}, out.Unknown...), append([]contract.PlannedUnknown{}, out.Refused...)
}

// object is what would happen to an object; changes is false if nothing would.
func (m *maker) object(o plan.Object) (out contract.PlannedChange, changes bool) {
	shown := o.After
	if shown == nil {
		shown = o.Before
	}
	if shown == nil {
		return out, false
	}
	u := &unstructured.Unstructured{Object: shown}
	out = contract.PlannedChange{Of: contract.PlanObjects, Name: kube.MemberOf(u).String(), Step: o.Step, Note: o.Why}
	if u.GetKind() == "Application" {
		out.Of = contract.PlanApplications
	}
	switch {
	case o.After == nil:
		out.Action, out.Note, out.Destroys = contract.PlanRemove, "", "removes "+out.Name+dataOf(o.Before)
		return out, true
	case o.Before == nil:
		out.Action, out.Content = contract.PlanAdd, m.digest(o.After)
		if u.GetKind() == "Secret" {
			out.Fields = diffOf(map[string]any{"data": map[string]any{}}, map[string]any{"data": m.clean(o.After, true)["data"]}, m.show)
		}
		return out, true
	}
	out.Action = contract.PlanChange
	out.Fields = diffOf(m.clean(o.Before, false), m.clean(o.After, false), m.show)
	for i, d := range out.Fields {
		if strings.HasSuffix(d.Path, configField) {
			out.Fields[i].Old, out.Fields[i].New = "", "another digest of what the pods read: they start again"
		}
	}
	return out, len(out.Fields) > 0
}

// learn has the values of a Secret kept out of everything that is shown.
func (m *maker) learn(o map[string]any) {
	if o["kind"] != "Secret" {
		return
	}
	for _, part := range []string{"data", "stringData"} {
		values, _ := o[part].(map[string]any)
		for key, v := range values {
			if text := plain(part, v); kube.IsSecret(key, text) {
				m.secrets.Add(text)
			}
		}
	}
}

// shortest is how long a secret is whose value is looked for elsewhere.
const shortest = 8

func plain(part string, v any) string {
	text, _ := v.(string)
	if part == "data" {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(raw)
		}
	}
	return text
}

// clean is an object without the API server's and controllers' fields and without values of a Secret.
func (m *maker) clean(o map[string]any, made bool) map[string]any {
	u := (&unstructured.Unstructured{Object: o}).DeepCopy()
	delete(u.Object, "status")
	delete(u.Object, "operation") // of an Application
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	annotations := u.GetAnnotations()
	for key := range annotations {
		if slices.Contains([]string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision", argo.RefreshAnnotation}, key) {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
	if made {
		unchosen(u)
	}
	if u.GetKind() == "Secret" {
		values := map[string]any{}
		for _, part := range []string{"data", "stringData"} {
			given, _ := u.Object[part].(map[string]any)
			for key, v := range given {
				values[key] = m.secret(plain(part, v))
			}
			delete(u.Object, part)
		}
		u.Object["data"] = values
	}
	return u.Object
}

// unchosen takes out of an object what the API server chooses anew each time that it is made.
func unchosen(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(u.Object, "spec", field)
		}
		ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
		for _, p := range ports {
			if port, is := p.(map[string]any); is {
				delete(port, "nodePort")
			}
		}
		_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
	case "Job": // its pods are found by its UID
		for _, labels := range [][]string{{"metadata", "labels"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
			for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
				unstructured.RemoveNestedField(u.Object, append(labels[:len(labels):len(labels)], label)...)
			}
		}
	}
}

// secret stands for the value of a Secret.
func (m *maker) secret(value string) string {
	if label, known := m.labels[value]; known {
		return label
	}
	if len(m.Salt) == 0 {
		return "(secret)"
	}
	sum := hmac.New(sha256.New, m.Salt)
	sum.Write([]byte(value))
	return "digest " + hex.EncodeToString(sum.Sum(nil))[:12]
}

// configField ends the path of the annotation with the digest of what pods read, new in each plan.
const configField = "[" + render.ConfigAnnotation + "]"

func (m *maker) show(v any) string {
	text := asText(v)
	for value, label := range m.labels {
		if len(value) >= shortest {
			quoted, _ := json.Marshal(value)
			text = strings.ReplaceAll(text, strings.Trim(string(quoted), `"`), label)
		}
	}
	return m.secrets.Redact(text)
}

// digest identifies an object's content, without what each plan makes anew.
func (m *maker) digest(o map[string]any) string {
	clean := m.clean(o, true)
	text, err := json.Marshal(m.relabel(clean))
	if err != nil {
		return err.Error()
	}
	return digestOf(text)[:19]
}

// relabel puts labels in the place of what is made anew, wherever it is in a value.
func (m *maker) relabel(v any) any {
	switch v := v.(type) {
	case string:
		if label, known := m.labels[v]; known {
			return label
		}
	case map[string]any:
		for key, below := range v {
			if key == render.ConfigAnnotation {
				v[key] = ""
				continue
			}
			v[key] = m.relabel(below)
		}
	case []any:
		for i, below := range v {
			v[i] = m.relabel(below)
		}
	}
	return v
}

// helper reports whether an object is one in which Slipway notes something.
func helper(o map[string]any) bool {
	u := &unstructured.Unstructured{Object: o}
	switch {
	case o == nil:
		return false
	case u.GetKind() == "ConfigMap" && u.GetNamespace() == kube.SystemNamespace:
		return strings.HasPrefix(u.GetName(), "slipway-")
	case u.GetKind() == "Secret" && u.GetNamespace() == kube.SystemNamespace:
		return o["type"] == string(kube.NoteType)
	}
	return false
}

// dataOf says that data goes with an object.
func dataOf(o map[string]any) string {
	u := &unstructured.Unstructured{Object: o}
	switch {
	case u.GetKind() == "Namespace":
		return ", with all that is in it"
	case kube.MemberOf(u).HasData():
		return ", with its data"
	}
	return ""
}

// images are those that objects begin or cease to name.
func images(before, after []string) (out []contract.PlannedChange) {
	only := func(action string, of, others []string) {
		slices.Sort(of)
		for _, image := range slices.Compact(of) {
			if !slices.Contains(others, image) {
				out = append(out, contract.PlannedChange{Of: contract.PlanImages, Action: action, Name: image})
			}
		}
	}
	only(contract.PlanAdd, after, before)
	only(contract.PlanRemove, before, after)
	return out
}
