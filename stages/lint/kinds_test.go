package lint

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// mistakesIn are those of a manifest, in words.
func mistakesIn(t *testing.T, manifest string) []string {
	t.Helper()
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	require.NotEmpty(t, objs)
	var out []string
	for _, o := range objs {
		for _, m := range fieldMistakes(o) {
			require.Equal(t, m.Got == "an unknown field", m.Unknown, m)
			out = append(out, m.String())
		}
	}
	return out
}

const deploymentOf = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: "

func TestMistakes(t *testing.T) {
	for manifest, want := range map[string][]string{
		deploymentOf + "{replcias: 2}":      {`spec.replcias: got an unknown field, want "replicas"`},
		deploymentOf + "{Replicas: 2}":      {`spec.Replicas: got an unknown field, want "replicas"`},
		deploymentOf + "{}\nreplicas: 2":    {`replicas: an unknown field`},
		deploymentOf + "{}\nlabels: {a: b}": {`labels: an unknown field`},
		deploymentOf + "{template: {spec: {containers: [{name: a}, {name: b, port: 80, imagee: x}]}}}": {`spec.template.spec.containers[1].imagee: got an unknown field, want "image"`, `spec.template.spec.containers[1].port: got an unknown field, want "ports"`},
		deploymentOf + "{template: {spec: {containers: [{name: a, httpGet: {}, env: [{name: A, value: 1}, {name: B, value: true}]}]}}, replicas: '3'}": {
			`spec.replicas: got text, want a whole number, without quotes`,
			`spec.template.spec.containers[0].env[0].value: got a number, want text (put it in quotes)`,
			`spec.template.spec.containers[0].env[1].value: got true or false, want text (put it in quotes)`,
			`spec.template.spec.containers[0].httpGet: an unknown field`,
		},
		deploymentOf + "{template: {spec: {containers: {name: a}, volumes: [{name: a, emptyDir: {sizeLimit: 1 Gi}}, {name: b, configMap: b}]}}}": {
			`spec.template.spec.containers: got a mapping, want a list`,
			`spec.template.spec.volumes[0].emptyDir.sizeLimit: got text, want a quantity such as 500m or 1Gi`,
			`spec.template.spec.volumes[1].configMap: got text, want a mapping`,
		},
		deploymentOf + "{paused: 'true', revisionHistoryLimit: 1.5, minReadySeconds: 99999999999, strategy: {rollingUpdate: {maxSurge: true}}}": {
			`spec.minReadySeconds: got a number out of range, want a whole number`,
			`spec.paused: got text, want true or false, without quotes`,
			`spec.revisionHistoryLimit: got a number, want a whole number`,
			`spec.strategy.rollingUpdate.maxSurge: got true or false, want a whole number or text`,
		},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {example.com/on: true, b: [1]}, labels: {v: 1}}\nspec: {ports: [{port: '80'}], selector: [a]}": {
			`metadata.annotations.b: got a list, want text`,
			`metadata.annotations["example.com/on"]: got true or false, want text (put it in quotes)`,
			`metadata.labels.v: got a number, want text (put it in quotes)`,
			`spec.ports[0].port: got text, want a whole number, without quotes`,
			`spec.selector: got a list, want a mapping`,
		},
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {port: 80, nested: {a: b}}":                       {`data.nested: got a mapping, want text`, `data.port: got a number, want text (put it in quotes)`},
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: hunter2!}\nstringData: {b: 1234567}":             {`data.a: got text, want text in base64`, `stringData.b: got a number, want text (put it in quotes)`},
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {jobTemplate: {spec: {backofLimit: 1}}}":      {`spec.jobTemplate.spec.backofLimit: got an unknown field, want "backoffLimit"`},
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\nrules: [{verb: [get]}]":            {`rules[0].verb: got an unknown field, want "verbs"`},
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, lables: {}}}":     {`metadata.lables: got an unknown field, want "labels"`},
		"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\nspec: {renewTime: soon}":                {`spec.renewTime: got text, want a time such as 2006-01-02T15:04:05Z`},
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: a, hostPath: {path: /, typ: ''}}]}":   {`spec.volumes[0].hostPath.typ: got an unknown field, want "type"`},
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, livenessProbe: {httpGet: 1}}]}": {`spec.containers[0].livenessProbe.httpGet: got a number, want a mapping`},
	} {
		require.Equal(t, want, mistakesIn(t, manifest), manifest)
	}
}

// TestWhatTheAPIServerTakes is no mistake.
func TestWhatTheAPIServerTakes(t *testing.T) {
	for what, manifest := range map[string]string{
		"null, and what comes out of a cluster": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, creationTimestamp: null, annotations: null, labels: {a: null}, generation: 2, uid: x, resourceVersion: '1'}\n" +
			"spec: {replicas: null, strategy: {}, template: {metadata: {creationTimestamp: null}, spec: {containers: [{name: a, resources: {}, args: [null]}], volumes: null}}}\nstatus: {replicas: 1, conditions: [{type: Available, status: 'True', lastUpdateTime: null}]}",
		"quantities":             "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, resources: {limits: {cpu: 1, memory: 1e9, a: 0.5, b: '1', c: 100m}, requests: {cpu: null}}}]}",
		"whole numbers or text":  "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, targetPort: 80}, {port: 81, targetPort: http}, {port: 82, targetPort: '80'}]}",
		"numbers in other forms": deploymentOf + "{replicas: 2.0, progressDeadlineSeconds: 0x10}",
		"a Secret":               "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: aHVudGVyMg==, b: null, c: ''}\nstringData: {a: hunter2}\nimmutable: true",
		"fields of fields": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, managedFields: [{manager: m, operation: Apply, fieldsV1: {'f:spec': {}}}]}\nspec: {volumes: [{name: a, projected: {sources: [{secret: {name: a}}]}}], " +
			"containers: [{name: a, livenessProbe: {httpGet: {port: http}, periodSeconds: 1}, lifecycle: {preStop: {sleep: {seconds: 1}}}}], ephemeralContainers: [{name: e, image: x, targetContainerName: a}]}",
		"objects in objects":          "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}]}",
		"what anything may be in":     "apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: a}\ndata: {what: [ever, 1]}\nrevision: 1",
		"a time":                      "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a, creationTimestamp: 2026-01-31T12:00:00Z}\nspec: {renewTime: '2026-01-31T12:00:00.000000Z'}",
		"a custom resource":           "apiVersion: example.com/v1\nkind: Deployment\nmetadata: {name: a, nmae: b}\nspec: {replcias: 1}",
		"a version that is not known": "apiVersion: apps/v9\nkind: Deployment\nmetadata: {name: a}\nspec: {replcias: 1}",
		"a kind that is not known":    "apiVersion: apps/v1\nkind: Deploymint\nmetadata: {name: a}\nspec: {replcias: 1}",
		"the definition of a kind":    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {versions: [{schema: {openAPIV3Schema: {x-kubernetes-new: true}}}]}",
		"an anchor":                   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &l {a: b}, annotations: {<<: *l, c: d}}",
	} {
		require.Empty(t, mistakesIn(t, manifest), what)
	}
}

// TestMistakesInEveryKind: what the decoder refuses is found by name, also in fields that a kind
// has through another type.
func TestMistakesInEveryKind(t *testing.T) {
	seen := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == "__internal" || kind.Group == "apiextensions.k8s.io" {
			continue
		}
		typed, err := scheme.Scheme.New(kind)
		require.NoError(t, err)
		if _, ok := typed.(interface{ GetName() string }); !ok { // options and lists
			continue
		}
		seen++
		apiVersion, name := kind.ToAPIVersionAndKind()
		require.Equal(t, []string{"metadata.labels.a: got a number, want text (put it in quotes)", `metadata.naem: got an unknown field, want "name"`, "namespace: an unknown field"},
			mistakesIn(t, "apiVersion: "+apiVersion+"\nkind: "+name+"\nnamespace: b\nmetadata: {name: a, naem: b, labels: {a: 1}}"), kind)
		require.Empty(t, mistakesIn(t, "apiVersion: "+apiVersion+"\nkind: "+name+"\nmetadata: {name: a}"), kind)
	}
	require.Greater(t, seen, 100)
	require.True(t, scheme.Scheme.Recognizes(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}))
}
