// Package preview makes a plan of what the steps of a workflow would do, from what they told
// in a dryrun.Preview, and compares it with another one.
package preview

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// Sum is the digest of a text: "sha256:…".
func Sum(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Maker makes the parts of a plan that are about objects.
type Maker struct {
	Seen *dryrun.Preview
	// Salt keeps the digest of a short secret from being guessed at; without one, no digest
	// of a secret is shown.
	Salt []byte

	labels  map[string]string
	secrets redact.Secrets
}

// Fill fills in what the steps told of objects, Jobs, Terraform and Git.
func (m *Maker) Fill(out *contract.Plan) {
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
			out.Basis.Objects[name(u)] = m.digest(o.Before)
			before = append(before, u)
		}
		if o.After != nil {
			after = append(after, &unstructured.Unstructured{Object: o.After})
		}
		planned, changes := m.object(o)
		switch {
		case o.Unknown && o.After != nil:
			out.Unknown = append(out.Unknown, contract.PlannedUnknown{What: planned.String(), Why: o.Why})
			continue
		case !changes:
			out.Unchanged++
		case planned.Kind == "Application":
			out.Applications = append(out.Applications, planned)
		default:
			out.Objects = append(out.Objects, planned)
		}
		if changes && planned.Action == contract.PlanRemove {
			out.Destructive = append(out.Destructive, "removes "+planned.String()+data(o.Before))
		}
	}
	out.Images.Added, out.Images.Removed = apart(render.Images(before), render.Images(after))
	for _, n := range m.Seen.Notes() {
		switch v := n.Value.(type) {
		case contract.PlannedJob:
			out.Jobs = append(out.Jobs, v)
		case contract.PlannedUnknown:
			out.Unknown = append(out.Unknown, v)
		case contract.PlannedStyle:
			out.Style = string(v)
		case contract.PlannedBackup:
			out.Backups = append(out.Backups, v)
		case contract.PlannedMigration:
			out.Migrations = append(out.Migrations, v)
			if !v.Undo {
				out.Destructive = append(out.Destructive, "migration "+v.Name+" of "+v.Data+" cannot be taken back: a rollback puts the backup in the place of the data")
			}
		case contract.PlannedGit:
			out.Git, out.Basis.Git = v, v.Revision
		case contract.PlannedTerraform:
			out.Terraform = v
			out.Basis.Terraform = fmt.Sprintf("%s %d", v.Lineage, v.Serial)
			for _, r := range v.Resources {
				if r.Action == "delete" || r.Action == "replace" {
					out.Destructive = append(out.Destructive, "Terraform would "+r.Action+" "+r.Address)
				}
			}
		case contract.Inventory:
			removed(out, v)
		}
	}
	sortAll(out)
}

// removed fills in what a destroy takes.
func removed(out *contract.Plan, has contract.Inventory) {
	for _, part := range []struct {
		kind  string
		names []string
	}{
		{"Application", has.Applications}, {"PersistentVolumeClaim", has.PersistentVolumeClaims},
		{"PersistentVolume", has.PersistentVolumes}, {"Service", has.LoadBalancers}, {"Namespace", has.Namespaces}, {"", has.Objects},
	} {
		for _, id := range part.names {
			o := contract.PlannedObject{Action: contract.PlanRemove, Kind: part.kind, Name: id}
			if kind, rest, is := strings.Cut(id, " "); is && part.kind == "" {
				o.Kind, o.Name, id = kind, rest, rest
			}
			if namespace, name, found := strings.Cut(id, "/"); found {
				o.Namespace, o.Name = namespace, name
			}
			if part.kind == "Application" {
				out.Applications = append(out.Applications, o)
			} else {
				out.Objects = append(out.Objects, o)
			}
			with := ""
			if part.kind == "PersistentVolumeClaim" || part.kind == "Namespace" {
				with = ", with all that is in it"
			}
			out.Destructive = append(out.Destructive, "removes "+o.String()+with)
		}
	}
}

// object is what would happen to an object; changes is false if nothing would.
func (m *Maker) object(o dryrun.Object) (out contract.PlannedObject, changes bool) {
	shown := o.After
	if shown == nil {
		shown = o.Before
	}
	if shown == nil {
		return out, false
	}
	u := &unstructured.Unstructured{Object: shown}
	out = contract.PlannedObject{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Step: o.Step, Note: o.Why}
	switch {
	case o.After == nil:
		out.Action, out.Note = contract.PlanRemove, ""
		return out, true
	case o.Before == nil:
		out.Action, out.Content = contract.PlanAdd, m.digest(o.After)
		if u.GetKind() == "Secret" {
			out.Fields = Diff(map[string]any{"data": map[string]any{}}, map[string]any{"data": m.clean(o.After, true)["data"]}, m.show)
		}
		return out, true
	}
	out.Action = contract.PlanChange
	out.Fields = Diff(m.clean(o.Before, false), m.clean(o.After, false), m.show)
	for i, d := range out.Fields {
		if strings.HasSuffix(d.Path, configField) {
			out.Fields[i].Old, out.Fields[i].New = "", "another digest of what the pods read: they start again"
		}
	}
	return out, len(out.Fields) > 0
}

// learn has the values of a Secret kept out of everything that is shown.
func (m *Maker) learn(o map[string]any) {
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

// plain is a value of a Secret.
func plain(part string, v any) string {
	text, _ := v.(string)
	if part == "data" {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(raw)
		}
	}
	return text
}

// clean is an object as it is compared: without what the API server and controllers keep in
// it, and without the values of a Secret.
func (m *Maker) clean(o map[string]any, made bool) map[string]any {
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
func (m *Maker) secret(value string) string {
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

// configField ends the path of the annotation with the digest of what pods read, which may
// come from values that are made anew in each preview.
const configField = "[" + render.ConfigAnnotation + "]"

// show is how a value of an object is shown.
func (m *Maker) show(v any) string {
	text := Shown(v)
	for value, label := range m.labels {
		if len(value) >= shortest {
			quoted, _ := json.Marshal(value)
			text = strings.ReplaceAll(text, strings.Trim(string(quoted), `"`), label)
		}
	}
	return m.secrets.Redact(text)
}

// digest tells an object's content from another one's, without what is made anew in each
// preview.
func (m *Maker) digest(o map[string]any) string {
	clean := m.clean(o, true)
	text, err := json.Marshal(m.relabel(clean))
	if err != nil {
		return err.Error()
	}
	return Sum(text)[:19]
}

// relabel puts labels in the place of what is made anew, wherever it is in a value.
func (m *Maker) relabel(v any) any {
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

// data says that data goes with an object.
func data(o map[string]any) string {
	if kube.MemberOf(&unstructured.Unstructured{Object: o}).HasData() {
		return ", with its data"
	}
	return ""
}

// name is "Deployment shop/web".
func name(u *unstructured.Unstructured) string {
	return contract.PlannedObject{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}.String()
}

// apart are those of b that a lacks, and those of a that b lacks.
func apart(a, b []string) (added, removed []string) {
	for _, v := range b {
		if !slices.Contains(a, v) && !slices.Contains(added, v) {
			added = append(added, v)
		}
	}
	for _, v := range a {
		if !slices.Contains(b, v) && !slices.Contains(removed, v) {
			removed = append(removed, v)
		}
	}
	slices.Sort(added)
	slices.Sort(removed)
	return added, removed
}
