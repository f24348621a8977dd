package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// facts describe a cluster: a name, and what was found under it without everything that
// differs from one clean install to the next.
type facts map[string]string

// compare names every difference.
func (f facts) compare(got facts) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(f)) {
		switch text, ok := got[name]; {
		case !ok:
			fmt.Fprintf(&b, "\n  %s is missing", name)
		case text != f[name]:
			fmt.Fprintf(&b, "\n  %s differs: %s", name, difference(f[name], text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := f[name]; !ok {
			fmt.Fprintf(&b, "\n  %s is there in addition", name)
		}
	}
	if b.Len() > 0 {
		return fmt.Errorf("it is not what a clean install makes:%s", b.String())
	}
	return nil
}

// difference shows where two texts part.
func difference(want, got string) string {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	from := max(0, at-40)
	return fmt.Sprintf("want …%s…, got …%s…", want[from:min(len(want), at+80)], got[from:min(len(got), at+80)])
}

// factsScript prints every object of the cluster but those of derived kinds, and hands its
// arguments on to kubectl. It needs nothing but a shell and kubectl.
var factsScript = `all=$(kubectl api-resources --verbs=list -o name)
kinds=
for kind in $all; do
	case $kind in
	` + strings.Join(derived, "|") + `) ;;
	*) kinds=$kinds,$kind ;;
	esac
done
kubectl get "${kinds#,}" -A -o json "$@"`

// derived are the kinds whose objects follow from others, or tell what happened. Most have
// names that no two installs share.
var derived = []string{
	"pods", "replicasets.apps", "controllerrevisions.apps", "endpoints", "endpointslices.discovery.k8s.io", "persistentvolumes",
	"csinodes.storage.k8s.io", "csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io", "ipaddresses.networking.k8s.io",
	"certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io", "leases.coordination.k8s.io", "events", "events.events.k8s.io", "componentstatuses", "*.metrics.k8s.io",
}

// object is any Kubernetes object.
type object = map[string]any

// factsOf are the facts of a list of objects, which factsScript prints: of all of them or, of
// a cluster that is not Slipway's, of what there is of the deployment with this name. The
// list has the managed fields then.
func factsOf(list []byte, deployment string) (facts, error) {
	var l struct {
		Items []object `json:"items"`
	}
	if err := json.Unmarshal(list, &l); err != nil {
		return nil, fmt.Errorf("decode the cluster's objects: %w", err)
	}
	if deployment != "" {
		l.Items = ownObjects(deployment, l.Items)
	}
	f := facts{}
	for _, o := range l.Items {
		if madeBy(o, "CronJob") { // one for each time
			continue
		}
		name := nameOf(o)
		strip(o)
		text, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		f[name] = withoutChance(string(text))
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("the cluster has no objects")
	}
	return f, nil
}

// nameOf is "apps/v1 Deployment namespace/name".
func nameOf(o object) string {
	meta := inside(o, "metadata")
	name := fmt.Sprint(meta["name"])
	if namespace, ok := meta["namespace"]; ok {
		name = fmt.Sprintf("%v/%s", namespace, name)
	}
	return fmt.Sprintf("%v %v %s", o["apiVersion"], o["kind"], name)
}

// madeBy reports whether an object was made by a controller for one of that kind.
func madeBy(o object, kind string) bool {
	owners, _ := inside(o, "metadata")["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		by, _ := owner.(object)
		return by["kind"] == kind
	})
}

// ownObjects are the objects of a deployment: what is in the namespaces that Slipway made for it,
// and what else has its label or was written by Slipway.
func ownObjects(deployment string, all []object) []object {
	made := map[any]bool{}
	for _, o := range all {
		labels := inside(o, "metadata", "labels")
		if o["kind"] == "Namespace" && labels["slipway.sh/deployment"] == deployment && labels["app.kubernetes.io/managed-by"] == "slipway" {
			made[inside(o, "metadata")["name"]] = true
		}
	}
	return slices.DeleteFunc(all, func(o object) bool {
		meta := inside(o, "metadata")
		if made[meta["namespace"]] {
			return false
		}
		if owner, ok := inside(meta, "labels")["slipway.sh/deployment"]; ok {
			return owner != deployment
		}
		writers, _ := meta["managedFields"].([]any)
		return !slices.ContainsFunc(writers, func(w any) bool {
			writer, _ := w.(object)
			return writer["manager"] == "slipway" && writer["subresource"] == nil
		})
	})
}

// strip removes what the cluster adds, what changes by itself and what is drawn at random.
func strip(o object) {
	meta := inside(o, "metadata")
	for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences", "selfLink"} {
		delete(meta, key)
	}
	plainMeta(meta)
	outcome := outcomeOf(o)
	delete(o, "status")
	delete(o, "operation")
	if outcome != "" {
		o["outcome"] = outcome
	}
	spec := inside(o, "spec")
	for _, key := range []string{"clusterIP", "clusterIPs", "volumeName", "healthCheckNodePort"} {
		delete(spec, key)
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if p, ok := p.(object); ok {
			delete(p, "nodePort")
		}
	}
	template := inside(spec, "template", "metadata")
	plainMeta(template)
	labels := inside(template, "labels") // of a Job, made from its uid
	delete(labels, "controller-uid")
	delete(labels, "batch.kubernetes.io/controller-uid")
	switch {
	case o["kind"] == "Job":
		delete(spec, "selector")
	case o["kind"] == "Node": // its taints come and go
		delete(o, "spec")
	case o["kind"] == "Secret":
		o["data"] = lengths(o)
	case o["kind"] == "ConfigMap" && meta["name"] == "slipway-status": // until the end it tells of what was last
		o["data"] = object{"success": inside(o, "data")["state"] == "Success"}
	}
}

// lengths say of each key of a Secret how long its value is, for the values themselves
// are drawn at random. Those of PEM files, and of what a chart rendered to, differ by some bytes.
func lengths(secret object) object {
	out := object{}
	for key, value := range inside(secret, "data") {
		text, _ := value.(string)
		data, err := base64.StdEncoding.DecodeString(text)
		switch {
		case err != nil:
			out[key] = "not base64"
		case secret["type"] == "slipway.sh/note" && (key == "manifest" || key == "hooks"):
			out[key] = "a chart"
		case strings.HasPrefix(string(data), "-----BEGIN "):
			out[key] = "PEM"
		default:
			out[key] = fmt.Sprintf("%d bytes", len(data))
		}
	}
	return out
}

// plainMeta removes annotations that tell of other things than the object's content:
// when something was restarted, digests of random values, what was applied, whose it is.
func plainMeta(meta object) {
	annotations := inside(meta, "annotations")
	for key := range annotations {
		if key == "slipway.sh/identity" || strings.Contains(key, "checksum") || strings.Contains(key, "restartedAt") || strings.Contains(key, "last-applied") ||
			strings.Contains(key, "refresh") || strings.Contains(key, "revision") || strings.HasPrefix(key, "control-plane.alpha") {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// outcomeOf is what an object's status says of how it ended up, without times and without
// what is another a moment later: the phase, what a Job came to, and an Application's health.
func outcomeOf(o object) string {
	status := inside(o, "status")
	switch o["kind"] {
	case "Application":
		return fmt.Sprint(inside(status, "sync")["status"], " ", inside(status, "health")["status"])
	case "Job":
		met := map[string]bool{}
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if c, ok := c.(object); ok && c["status"] == "True" {
				met[fmt.Sprint(c["type"])] = true
			}
		}
		return strings.Join(slices.Sorted(maps.Keys(met)), " ")
	}
	phase, _ := status["phase"].(string)
	return phase
}

// chance are texts that no two installs share: certificates, commits, ids of
// runs, addresses that the cluster gave, times, digests of generated values (those of images
// follow a name), and the serial of the Terraform state, which grows with each of the
// writes that Terraform did not join.
var chance = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]+-----[^-]*-----END [A-Z ]+-----(\\n)?`), "<pem>"},
	{regexp.MustCompile(`"caBundle":"[^"]*"`), `"caBundle":"<pem>"`},
	{regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-f]{6}\b`), "<run>"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<commit>"},
	{regexp.MustCompile(`"[0-9a-f]{64}"`), `"<digest>"`},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b(10\.\d+|172\.(1[6-9]|2\d|3[01])|192\.168)\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b`), "<time>"},
	{regexp.MustCompile(`terraformSerial: \d+`), "terraformSerial: <serial>"},
}

// withoutChance replaces what no two installs share by what it is.
func withoutChance(s string) string {
	for _, c := range chance {
		s = c.what.ReplaceAllString(s, c.by)
	}
	return s
}

// clusterWith is one with GitOps. Its random parts are in it: an identity, a password, a version,
// the end of an address and of a port, a commit, and what matters is the health.
func clusterWith(password, version, last, health string) string {
	return strings.NewReplacer("PASSWORD", base64.StdEncoding.EncodeToString([]byte(password)), "VERSION", version, "LAST", last, "HEALTH", health).Replace(`{"items":[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"slipway-system","annotations":{"slipway.sh/identity":"id-VERSION"}}},
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"LAST"},"data":{"password":"PASSWORD"}},
{"apiVersion":"v1","kind":"Service","metadata":{"name":"w","namespace":"n","resourceVersion":"VERSION"},"spec":{"clusterIP":"10.0.0.LAST","ports":[{"port":80,"nodePort":3LAST}]}},
{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"sync":{"status":"Synced","revision":"VERSION"},"health":{"status":"HEALTH"}}}
]}`)
}

func factsIn(t *testing.T, text, deployment string) facts {
	t.Helper()
	f, err := factsOf([]byte(text), deployment)
	require.NoError(t, err)
	return f
}

func TestFactsLeaveOutChanceAndNothingElse(t *testing.T) {
	want := factsIn(t, clusterWith("aaaa", "1", "1", "Healthy"), "")
	require.NoError(t, want.compare(factsIn(t, clusterWith("bbbb", "2", "2", "Healthy"), "")))
	require.ErrorContains(t, want.compare(factsIn(t, clusterWith("aaaa", "1", "1", "Degraded"), "")), "argoproj.io/v1alpha1 Application n/a differs")
	require.ErrorContains(t, want.compare(factsIn(t, clusterWith("", "1", "1", "Healthy"), "")), "v1 Secret n/s differs", "an empty password")

	missing := maps.Clone(want)
	delete(missing, "v1 Secret n/s")
	require.ErrorContains(t, want.compare(missing), "v1 Secret n/s is missing")
	require.ErrorContains(t, missing.compare(want), "v1 Secret n/s is there in addition")

	_, err := factsOf([]byte(`{"items":[]}`), "")
	require.Error(t, err, "an empty cluster is no proof")
}

// TestFactsWithoutGitOps: of manifests and Jobs, what they ended as is compared, and not
// the digests of generated values or the run.
func TestFactsWithoutGitOps(t *testing.T) {
	list := func(image, digest, condition, since, state string) string {
		return strings.NewReplacer("IMAGE", strings.Repeat(image, 64), "DIGEST", strings.Repeat(digest, 64), "CONDITION", condition, "SINCE", since, "STATE", state).Replace(`{"items":[
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"n"},"spec":{"template":{"metadata":{"annotations":{"slipway.sh/config":"DIGEST"}},"spec":{"image":"r/i@sha256:IMAGE","hostAliases":[{"ip":"172.20.0.9"}]}}},"status":{"readyReplicas":1}},
{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"n","annotations":{"slipway.sh/work":"DIGEST"}},"status":{"conditions":[{"type":"CONDITION","status":"True","lastTransitionTime":"SINCE"},{"type":"Suspended","status":"False"}]}},
{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"nightly-SINCE","namespace":"n","ownerReferences":[{"kind":"CronJob"}]}},
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"n"},"status":{"phase":"Bound"}},
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slipway-status","namespace":"slipway-system"},"data":{"state":"STATE","message":"SINCE","run":"SINCE"}}
]}`)
	}
	want := factsIn(t, list("0", "a", "Complete", "1", "Success"), "")
	require.Len(t, want, 4)
	require.Contains(t, want["v1 PersistentVolumeClaim n/c"], `"outcome":"Bound"`)
	require.NoError(t, want.compare(factsIn(t, list("0", "b", "Complete", "2", "Success"), "")))
	for text, got := range map[string]string{
		"apps/v1 Deployment n/d":                     list("1", "a", "Complete", "1", "Success"),
		"batch/v1 Job n/j":                           list("0", "a", "Failed", "1", "Success"),
		"v1 ConfigMap slipway-system/slipway-status": list("0", "a", "Complete", "1", "Failed"),
	} {
		err := want.compare(factsIn(t, got, ""))
		require.ErrorContains(t, err, text+" differs")
		require.Equal(t, 1, strings.Count(err.Error(), "differs"), err)
	}
}

// TestFactsOfAClusterOfOthers: what is not the deployment's is nobody's business.
func TestFactsOfAClusterOfOthers(t *testing.T) {
	f := factsIn(t, `{"items":[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ours","labels":{"app.kubernetes.io/managed-by":"slipway","slipway.sh/deployment":"chaos"}}},
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made-by-a-controller","namespace":"ours"}},
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"used","labels":{"slipway.sh/deployment":"chaos"}}},
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs","namespace":"used"}},
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ours","namespace":"used","managedFields":[{"manager":"kubectl"},{"manager":"slipway"}]}},
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other","labels":{"app.kubernetes.io/managed-by":"slipway","slipway.sh/deployment":"other"},"managedFields":[{"manager":"slipway"}]}},
{"apiVersion":"v1","kind":"Node","metadata":{"name":"node","managedFields":[{"manager":"slipway","subresource":"status"}]}},
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"ours","labels":{"slipway.sh/deployment":"chaos"}}},
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"theirs"}}
]}`, "chaos")
	require.Equal(t, []string{"rbac.authorization.k8s.io/v1 ClusterRole ours", "v1 ConfigMap ours/made-by-a-controller", "v1 ConfigMap used/ours",
		"v1 Namespace ours", "v1 Namespace used"}, slices.Sorted(maps.Keys(f)))
}

func TestLengthsOfSecrets(t *testing.T) {
	in := func(kind, value string) object {
		return object{"type": kind, "data": object{"k": base64.StdEncoding.EncodeToString([]byte(value))}}
	}
	require.Equal(t, object{"k": "3 bytes"}, lengths(in("Opaque", "abc")))
	require.Equal(t, object{"k": "PEM"}, lengths(in("kubernetes.io/tls", "-----BEGIN CERTIFICATE-----\n")))
	require.Equal(t, object{"k": "3 bytes"}, lengths(in("slipway.sh/note", "abc")))
	require.Empty(t, lengths(object{}))
}

// TestFactsScript: every kind is listed but those that follow from others.
func TestFactsScript(t *testing.T) {
	dir := t.TempDir()
	kubectl := "#!/bin/sh\ncase $1 in api-resources) printf '%s\\n' configmaps pods events.events.k8s.io widgets.example.com nodes.metrics.k8s.io ;; *) echo \"$@\" ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755))
	cmd := exec.CommandContext(t.Context(), "sh", "-ceu", factsScript, "sh", "--show-managed-fields")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "get configmaps,widgets.example.com -A -o json --show-managed-fields\n", string(out))
}

func TestWithoutChance(t *testing.T) {
	require.Equal(t, "run: <run> at <time> on <address>", withoutChance("run: 20260101-101010-a1b2c3 at 2026-01-01T10:10:10Z on 10.1.2.3"))
	require.Equal(t, "<address> <address> 172.32.0.1 192.0.2.1", withoutChance("192.168.1.2 172.31.0.1 172.32.0.1 192.0.2.1"))
	require.Equal(t, `terraformSerial: <serial>`, withoutChance(`terraformSerial: 12`))
	require.Equal(t, `"<pem>x"`, withoutChance(`"-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\nx"`))
}
