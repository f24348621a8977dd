package facts

import (
	"encoding/base64"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cluster is one with GitOps. Its random parts are in it: an identity, a password, a version,
// the end of an address and of a port, a commit, and what matters is the health.
func cluster(password, version, last, health string) string {
	return strings.NewReplacer("PASSWORD", base64.StdEncoding.EncodeToString([]byte(password)), "VERSION", version, "LAST", last, "HEALTH", health).Replace(`{"items":[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"slipway-system","annotations":{"slipway.sh/identity":"id-VERSION"}}},
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"LAST"},"data":{"password":"PASSWORD"}},
{"apiVersion":"v1","kind":"Service","metadata":{"name":"w","namespace":"n","resourceVersion":"VERSION"},"spec":{"clusterIP":"10.0.0.LAST","ports":[{"port":80,"nodePort":3LAST}]}},
{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"sync":{"status":"Synced","revision":"VERSION"},"health":{"status":"HEALTH"}}}
]}`)
}

func read(t *testing.T, text, deployment string) Facts {
	t.Helper()
	f, err := Objects([]byte(text), deployment)
	require.NoError(t, err)
	return f
}

func TestFactsLeaveOutChanceAndNothingElse(t *testing.T) {
	want := read(t, cluster("aaaa", "1", "1", "Healthy"), "")
	require.NoError(t, want.Compare(read(t, cluster("bbbb", "2", "2", "Healthy"), "")))
	require.ErrorContains(t, want.Compare(read(t, cluster("aaaa", "1", "1", "Degraded"), "")), "argoproj.io/v1alpha1 Application n/a differs")
	require.ErrorContains(t, want.Compare(read(t, cluster("", "1", "1", "Healthy"), "")), "v1 Secret n/s differs", "an empty password")

	missing := maps.Clone(want)
	delete(missing, "v1 Secret n/s")
	require.ErrorContains(t, want.Compare(missing), "v1 Secret n/s is missing")
	require.ErrorContains(t, missing.Compare(want), "v1 Secret n/s is there in addition")

	_, err := Objects([]byte(`{"items":[]}`), "")
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
	want := read(t, list("0", "a", "Complete", "1", "Success"), "")
	require.Len(t, want, 4)
	require.Contains(t, want["v1 PersistentVolumeClaim n/c"], `"outcome":"Bound"`)
	require.NoError(t, want.Compare(read(t, list("0", "b", "Complete", "2", "Success"), "")))
	for text, got := range map[string]string{
		"apps/v1 Deployment n/d":                     list("1", "a", "Complete", "1", "Success"),
		"batch/v1 Job n/j":                           list("0", "a", "Failed", "1", "Success"),
		"v1 ConfigMap slipway-system/slipway-status": list("0", "a", "Complete", "1", "Failed"),
	} {
		err := want.Compare(read(t, got, ""))
		require.ErrorContains(t, err, text+" differs")
		require.Equal(t, 1, strings.Count(err.Error(), "differs"), err)
	}
}

// TestFactsOfAClusterOfOthers: what is not the deployment's is nobody's business.
func TestFactsOfAClusterOfOthers(t *testing.T) {
	f := read(t, `{"items":[
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
	require.Equal(t, object{"k": "a release"}, lengths(in("helm.sh/release.v1", "abc")))
	require.Empty(t, lengths(object{}))
}

// TestScript: every kind is listed but those that follow from others.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	kubectl := "#!/bin/sh\ncase $1 in api-resources) printf '%s\\n' configmaps pods events.events.k8s.io widgets.example.com nodes.metrics.k8s.io ;; *) echo \"$@\" ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755))
	cmd := exec.CommandContext(t.Context(), "sh", "-ceu", Script, "sh", "--show-managed-fields")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "get configmaps,widgets.example.com -A -o json --show-managed-fields\n", string(out))
}

func TestWithoutChance(t *testing.T) {
	require.Equal(t, "run: <run> at <time> on <address>", WithoutChance("run: 20260101-101010-a1b2c3 at 2026-01-01T10:10:10Z on 10.1.2.3"))
	require.Equal(t, "<address> <address> 172.32.0.1 192.0.2.1", WithoutChance("192.168.1.2 172.31.0.1 172.32.0.1 192.0.2.1"))
	require.Equal(t, `terraformSerial: <serial> {"modifiedAt":"<time>"}`, WithoutChance(`terraformSerial: 12 {"modifiedAt":"1795221837"}`))
	require.Equal(t, `"<pem>x"`, WithoutChance(`"-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\nx"`))
}
