package incontainer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
)

// diffOf lists what differs between two values of JSON, by path. Lists whose items have names
// are compared by those. show turns a value into what is shown of it.
func diffOf(before, after any, show func(v any) string) []contract.Difference {
	var out []contract.Difference
	diff("", before, after, func(path string, a, b any) {
		d := contract.Difference{Path: path}
		if a != nil {
			d.Old = show(a)
		}
		if b != nil {
			d.New = show(b)
		}
		out = append(out, d)
	})
	return out
}

func diff(path string, a, b any, found func(path string, a, b any)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	am, aIs := a.(map[string]any)
	bm, bIs := b.(map[string]any)
	if aIs && bIs {
		diffMaps(path, am, bm, field, found)
		return
	}
	al, aIsList := a.([]any)
	bl, bIsList := b.([]any)
	if !aIsList || !bIsList {
		found(path, a, b)
		return
	}
	if an, bn := byName(al), byName(bl); an != nil && bn != nil {
		diffMaps(path, an, bn, item, found)
		return
	}
	if len(al) != len(bl) {
		found(path, a, b)
		return
	}
	for i := range al {
		diff(fmt.Sprintf("%s[%d]", path, i), al[i], bl[i], found)
	}
}

func diffMaps(path string, a, b map[string]any, join func(path, key string) string, found func(path string, a, b any)) {
	keys := map[string]bool{}
	for _, m := range []map[string]any{a, b} {
		for k := range m {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		diff(join(path, k), a[k], b[k], found)
	}
}

// field is "metadata.labels", or "data[app.ini]" for a key with dots in it.
func field(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func item(path, name string) string { return path + "[" + name + "]" }

// byName are the items of a list by their names; nil if they have none, or not one each.
func byName(list []any) map[string]any {
	out := map[string]any{}
	for _, v := range list {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		if _, twice := out[name]; name == "" || twice {
			return nil
		}
		out[name] = v
	}
	return out
}

const longest = 160

// asText is a value as JSON; a long one is told by its digest.
func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > longest {
		return fmt.Sprintf("(%d characters, %s)", len(text), digestOf(text)[:19])
	}
	return string(text)
}

// stale says what has changed since a plan was made; nothing if now is the same plan.
func stale(was, now *contract.Plan) []string {
	if was.Digest == now.Digest {
		return nil
	}
	var out []string
	differs := func(what, was, is string) {
		if was != is {
			out = append(out, fmt.Sprintf("%s is %s, not %s", what, cmp.Or(is, "none"), cmp.Or(was, "none")))
		}
	}
	a, b := was.Basis, now.Basis
	differs("the workflow", was.Workflow, now.Workflow)
	differs("the deployment", was.Deployment, now.Deployment)
	differs("the style", was.Style, now.Style)
	differs("the platform release", was.Release.Name+" "+was.Release.To, now.Release.Name+" "+now.Release.To)
	for _, of := range []struct{ what, was, is string }{
		{"the content of the platform release", a.Release, b.Release}, {"the configuration", a.Configuration, b.Configuration}, {"the bundle", a.Tools, b.Tools},
	} {
		if of.was != of.is {
			out = append(out, of.what+" has changed")
		}
	}
	differs("the installed release", a.Installed, b.Installed)
	differs("the Terraform state has moved on: it", a.Terraform, b.Terraform)
	repository, at, _ := strings.Cut(b.Git, "@")
	_, planned, _ := strings.Cut(a.Git, "@")
	differs("somebody has pushed to the Git repository "+repository+": it", planned, at)
	all := maps.Clone(a.Objects)
	maps.Copy(all, b.Objects)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch before, after := a.Objects[name], b.Objects[name]; {
		case before == after:
		case before == "":
			out = append(out, name+" was added")
		case after == "":
			out = append(out, name+" was removed")
		default:
			out = append(out, name+" was edited")
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, c := range slices.Concat(was.Changes, now.Changes) {
		same := func(x contract.PlannedChange) bool { return reflect.DeepEqual(x, c) }
		text := "what would be done to " + c.Name + " is something else"
		if c.Of != contract.PlanImages && !(slices.ContainsFunc(was.Changes, same) && slices.ContainsFunc(now.Changes, same)) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		out = []string{"what the steps would do is something else"}
	}
	return out
}
