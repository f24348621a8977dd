package facts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Script prints every object of the cluster but those of derived kinds, and hands its
// arguments on to kubectl. It needs nothing but a shell and kubectl.
//
//nolint:gochecknoglobals // a constant
var Script = `all=$(kubectl api-resources --verbs=list -o name)
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
var derived = []string{ //nolint:gochecknoglobals // a constant
	"pods", "replicasets.apps", "controllerrevisions.apps", "endpoints", "endpointslices.discovery.k8s.io", "persistentvolumes",
	"csinodes.storage.k8s.io", "csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io", "ipaddresses.networking.k8s.io",
	"certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io", "leases.coordination.k8s.io", "events", "events.events.k8s.io", "componentstatuses", "*.metrics.k8s.io",
}

// object is any Kubernetes object.
type object = map[string]any

// Objects are the facts of a list of objects, which Script prints: of all of them or, of
// a cluster that is not Slipway's, of what there is of the deployment with this name. The
// list has the managed fields then.
func Objects(list []byte, deployment string) (Facts, error) {
	var l struct {
		Items []object `json:"items"`
	}
	if err := json.Unmarshal(list, &l); err != nil {
		return nil, fmt.Errorf("decode the cluster's objects: %w", err)
	}
	if deployment != "" {
		l.Items = of(deployment, l.Items)
	}
	f := Facts{}
	for _, o := range l.Items {
		if from(o, "CronJob") { // one for each time
			continue
		}
		name := nameOf(o)
		strip(o)
		text, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		f[name] = WithoutChance(string(text))
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("the cluster has no objects")
	}
	return f, nil
}

// nameOf is "apps/v1 Deployment namespace/name".
func nameOf(o object) string {
	meta := below(o, "metadata")
	name := fmt.Sprint(meta["name"])
	if namespace, ok := meta["namespace"]; ok {
		name = fmt.Sprintf("%v/%s", namespace, name)
	}
	return fmt.Sprintf("%v %v %s", o["apiVersion"], o["kind"], name)
}

// below is the object under a key; an empty one, which is not part of o, if there is none.
func below(o object, keys ...string) object {
	for _, key := range keys {
		next, ok := o[key].(object)
		if !ok {
			return object{}
		}
		o = next
	}
	return o
}

// from reports whether an object was made by a controller for one of that kind.
func from(o object, kind string) bool {
	owners, _ := below(o, "metadata")["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		by, _ := owner.(object)
		return by["kind"] == kind
	})
}

// of are the objects of a deployment: what is in the namespaces that Slipway made for it,
// and what else has its label or was written by Slipway.
func of(deployment string, all []object) []object {
	made := map[any]bool{}
	for _, o := range all {
		labels := below(o, "metadata", "labels")
		if o["kind"] == "Namespace" && labels["slipway.sh/deployment"] == deployment && labels["app.kubernetes.io/managed-by"] == "slipway" {
			made[below(o, "metadata")["name"]] = true
		}
	}
	return slices.DeleteFunc(all, func(o object) bool {
		meta := below(o, "metadata")
		if made[meta["namespace"]] {
			return false
		}
		if owner, ok := below(meta, "labels")["slipway.sh/deployment"]; ok {
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
	meta := below(o, "metadata")
	for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences", "selfLink"} {
		delete(meta, key)
	}
	plain(meta)
	outcome := outcome(o)
	delete(o, "status")
	delete(o, "operation")
	if outcome != "" {
		o["outcome"] = outcome
	}
	spec := below(o, "spec")
	for _, key := range []string{"clusterIP", "clusterIPs", "volumeName", "healthCheckNodePort"} {
		delete(spec, key)
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if p, ok := p.(object); ok {
			delete(p, "nodePort")
		}
	}
	template := below(spec, "template", "metadata")
	plain(template)
	labels := below(template, "labels") // of a Job, made from its uid
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
		o["data"] = object{"success": below(o, "data")["state"] == "Success"}
	}
}

// lengths say of each key of a Secret how long its value is, for the values themselves
// are drawn at random. Those of PEM files and of Helm's releases differ by some bytes.
func lengths(secret object) object {
	out := object{}
	for key, value := range below(secret, "data") {
		text, _ := value.(string)
		data, err := base64.StdEncoding.DecodeString(text)
		switch {
		case err != nil:
			out[key] = "not base64"
		case secret["type"] == "helm.sh/release.v1":
			out[key] = "a release"
		case strings.HasPrefix(string(data), "-----BEGIN "):
			out[key] = "PEM"
		default:
			out[key] = fmt.Sprintf("%d bytes", len(data))
		}
	}
	return out
}

// plain removes annotations that tell of other things than the object's content:
// when something was restarted, digests of random values, what was applied, whose it is.
func plain(meta object) {
	annotations := below(meta, "annotations")
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

// outcome is what an object's status says of how it ended up, without times and without
// what is another a moment later: the phase, what a Job came to, and an Application's health.
func outcome(o object) string {
	status := below(o, "status")
	switch o["kind"] {
	case "Application":
		return fmt.Sprint(below(status, "sync")["status"], " ", below(status, "health")["status"])
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
var chance = []struct { //nolint:gochecknoglobals // constants
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
	{regexp.MustCompile(`"modifiedAt":"\d+"`), `"modifiedAt":"<time>"`}, // Helm's
	{regexp.MustCompile(`terraformSerial: \d+`), "terraformSerial: <serial>"},
}

// WithoutChance replaces what no two installs share by what it is.
func WithoutChance(s string) string {
	for _, c := range chance {
		s = c.what.ReplaceAllString(s, c.by)
	}
	return s
}
