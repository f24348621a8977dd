package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// installable are the kinds of objects that a platform in one namespace may have.
const installable = "deployments,statefulsets,daemonsets,jobs,cronjobs,services,serviceaccounts,networkpolicies,poddisruptionbudgets," +
	"configmaps,secrets,persistentvolumeclaims,roles,rolebindings,ingresses"

// requireFiled asserts that the objects of the cluster are those of the release's files,
// with all that stands there, an image's name but for its reference by digest, that Slipway
// has set nothing else in them but what additions says, and that whatever else it has made
// is a ConfigMap or Secret.
func (k *kept) requireFiled(t *testing.T, release string, images map[string]string) {
	t.Helper()
	filed := map[string]any{}
	require.NoError(t, filepath.WalkDir(release, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "platform.yaml" {
			return err
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var o map[string]any
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				return nil
			}
			require.NoError(t, err)
			filed[fmt.Sprint(o["kind"], " ", o["metadata"].(map[string]any)["name"])] = plainJSON(t, o)
		}
	}))
	require.NotEmpty(t, filed)
	var live struct{ Items []map[string]any }
	k.objects(t, installable, &live, "--show-managed-fields")
	seen := map[string]bool{}
	for _, o := range live.Items {
		meta := o["metadata"].(map[string]any)
		id := fmt.Sprint(o["kind"], " ", meta["name"])
		want, ok := filed[id]
		owned := ownedBy(meta, "slipway")
		if !ok {
			if len(owned) > 0 {
				require.Contains(t, []any{"ConfigMap", "Secret"}, o["kind"], id)
			}
			continue
		}
		seen[id] = true
		require.Empty(t, missing(id, want, o, images))
		require.NotEmpty(t, owned, id)
		for _, fields := range owned {
			require.Empty(t, added("", fields, want), id)
		}
	}
	for id := range filed {
		if id != "Job create-admin" { // which the test has deleted
			require.True(t, seen[id], "%s is not in the cluster", id)
		}
	}
}

// plainJSON is a value as JSON has it.
func plainJSON(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// missing says what of want is not in have: maps may have more, all else is the same.
func missing(at string, want, have any, images map[string]string) []string {
	var out []string
	switch want := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return []string{at}
		}
		for key, v := range want {
			out = append(out, missing(at+"."+key, v, h[key], images)...)
		}
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(want) {
			return []string{at}
		}
		for i := range want {
			out = append(out, missing(fmt.Sprintf("%s[%d]", at, i), want[i], h[i], images)...)
		}
	default:
		if name, ok := want.(string); ok && strings.HasSuffix(at, ".image") {
			short, _, _ := strings.Cut(path.Base(name), ":")
			want = images[short]
		}
		if want != have {
			out = append(out, fmt.Sprintf("%s: %v, not %v", at, have, want))
		}
	}
	slices.Sort(out)
	return out
}

// ownedBy are the fields of an object that a manager has set, by its metadata; those of its
// status are not among them.
func ownedBy(meta map[string]any, manager string) (out []map[string]any) {
	all, _ := meta["managedFields"].([]any)
	for _, m := range all {
		m := m.(map[string]any)
		if fields, ok := m["fieldsV1"].(map[string]any); ok && m["manager"] == manager && m["subresource"] == nil {
			out = append(out, fields)
		}
	}
	return out
}

// additions are what Slipway adds to the objects of a release: whose they are, digests of
// what a Job does and of the configuration that pods read, and what hosts they resolve.
var additions = regexp.MustCompile(`^\.metadata\.labels\.(app\.kubernetes\.io/managed-by|slipway\.sh/deployment)$` +
	`|^\.metadata\.annotations\.slipway\.sh/work$` +
	`|^\.spec\.template\.metadata\.annotations\.slipway\.sh/config$` +
	`|^\.spec\.template\.spec\.hostAliases`)

// added says which owned fields are neither in a file nor additions. The fields are as
// managedFields has them: "f:name", "k:{key of an element}", "v:element", and "." for what
// they are in.
func added(at string, owned map[string]any, file any) []string {
	var out []string
	for key, v := range owned {
		kind, name, _ := strings.Cut(key, ":")
		where, in := at+"."+name, any(nil)
		switch kind {
		case ".":
			continue
		case "f":
			m, _ := file.(map[string]any)
			in = m[name]
		default:
			where = at + "[" + name + "]"
			in = element(kind, name, file)
		}
		if deeper, _ := v.(map[string]any); len(deeper) > 0 {
			out = append(out, added(where, deeper, in)...)
		} else if in == nil && !additions.MatchString(where) {
			out = append(out, where)
		}
	}
	slices.Sort(out)
	return out
}

// element is that of a list which managedFields calls kind:name; nil if there is none.
func element(kind, name string, list any) any {
	var want any
	if json.Unmarshal([]byte(name), &want) != nil {
		return nil
	}
	all, _ := list.([]any)
	for _, e := range all {
		if kind == "v" && e == want {
			return e
		}
		keys, _ := want.(map[string]any)
		m, ok := e.(map[string]any)
		for key, value := range keys {
			ok = ok && m[key] == value
		}
		if kind == "k" && ok {
			return e
		}
	}
	return nil
}

func TestWhatIsAddedIsFound(t *testing.T) {
	var file, owned map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"metadata": {"name": "a", "finalizers": ["x"]}, "spec": {"ports": [{"port": 1, "protocol": "TCP"}]}}`), &file))
	require.NoError(t, json.Unmarshal([]byte(`{
		"f:metadata": {"f:labels": {".": {}, "f:slipway.sh/deployment": {}, "f:more": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}, "v:\"y\"": {}}},
		"f:spec": {
			"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}, "k:{\"port\":2,\"protocol\":\"TCP\"}": {"f:port": {}}},
			"f:template": {"f:metadata": {"f:annotations": {"f:slipway.sh/config": {}}}, "f:spec": {"f:hostAliases": {"k:{\"ip\":\"10.0.0.1\"}": {".": {}, "f:ip": {}}}}}
		}
	}`), &owned))
	require.Equal(t, []string{
		`.metadata.finalizers["y"]`, ".metadata.labels.more",
		`.spec.ports[{"port":1,"protocol":"TCP"}].name`, `.spec.ports[{"port":2,"protocol":"TCP"}].port`,
	}, added("", owned, file))
}

func TestWhatIsMissingIsFound(t *testing.T) {
	images := map[string]string{"dex": "slipway.local/dex@sha256:1"}
	file := map[string]any{"image": "slipway.local/dex:2", "ports": []any{1.0}, "name": "a"}
	live := map[string]any{"image": "slipway.local/dex@sha256:1", "ports": []any{1.0}, "name": "a", "default": true}
	require.Empty(t, missing("o", file, live, images))
	for key, other := range map[string]any{"image": "slipway.local/dex:2", "ports": []any{1.0, 2.0}, "name": nil} {
		changed := map[string]any{"image": live["image"], "ports": live["ports"], "name": live["name"]}
		changed[key] = other
		require.Len(t, missing("o", file, changed, images), 1, key)
	}
}

// digest is that of a platform release's files as a run records it: over path, executable
// bit and content of each.
func digest(t *testing.T, release string) string {
	t.Helper()
	all := sha256.New()
	require.NoError(t, fs.WalkDir(os.DirFS(release), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text := read(t, release, name)
		info, err := entry.Info()
		require.NoError(t, err)
		mode := "file"
		if info.Mode()&0o111 != 0 {
			mode = "exec"
		}
		_, err = fmt.Fprintf(all, "%s %q %x\n", mode, name, sha256.Sum256([]byte(text)))
		return err
	}))
	return "sha256:" + hex.EncodeToString(all.Sum(nil))
}
