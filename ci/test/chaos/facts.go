package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// facts describe a cluster and the recorded state: a name, and what was found
// under it without everything that differs from one clean install to the next.
type facts map[string]string

// listed are the objects that an install makes. Pods, ReplicaSets and the like
// follow from them.
const listed = "namespaces,deployments.apps,statefulsets.apps,daemonsets.apps,jobs.batch,services,configmaps,secrets," +
	"serviceaccounts,persistentvolumeclaims,storageclasses,customresourcedefinitions,networkpolicies," +
	"roles,rolebindings,clusterroles,clusterrolebindings"

// script prints them, and those of Argo CD where it is installed.
const script = "kinds=" + listed + `
for kind in applications.argoproj.io appprojects.argoproj.io; do
	[ -z "$(kubectl get customresourcedefinition "$kind" --ignore-not-found -o name)" ] || kinds="$kinds,$kind"
done
kubectl get "$kinds" -A -o json`

// facts looks at the deployment, which is installed.
func (d *deployment) facts(ctx context.Context) (facts, error) {
	text, err := slipway.Output(d.CLI(ctx, "toolchain", "--", "sh", "-ceu", script))
	if err != nil {
		return nil, err
	}
	f, err := objects(text)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slipway-chaos-state-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the report: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := d.report(ctx, filepath.Join(dir, "report")); err != nil {
		return nil, err
	}
	state, err := os.ReadFile(filepath.Join(dir, "report", "state.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the runtime state: %w", err)
	}
	f["state.yaml"] = withoutChance(string(state))
	return f, nil
}

// object is any Kubernetes object.
type object = map[string]any

// objects are the facts of a list of objects.
func objects(list []byte) (facts, error) {
	var l struct {
		Items []object `json:"items"`
	}
	if err := json.Unmarshal(list, &l); err != nil {
		return nil, fmt.Errorf("decode the cluster's objects: %w", err)
	}
	if len(l.Items) == 0 {
		return nil, fmt.Errorf("the cluster has no objects")
	}
	f := facts{}
	for _, o := range l.Items {
		meta, _ := o["metadata"].(object)
		name := fmt.Sprintf("%v %v/%v", o["kind"], meta["namespace"], meta["name"])
		strip(o)
		text, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		f[name] = withoutChance(string(text))
	}
	return f, nil
}

// strip removes what the cluster adds and what is drawn at random.
func strip(o object) {
	meta, _ := o["metadata"].(object)
	for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences", "selfLink"} {
		delete(meta, key)
	}
	plain(meta)
	health := health(o)
	delete(o, "status")
	delete(o, "operation")
	if health != "" {
		o["health"] = health
	}
	spec, _ := o["spec"].(object)
	for _, key := range []string{"clusterIP", "clusterIPs", "volumeName", "healthCheckNodePort"} {
		delete(spec, key)
	}
	if ports, ok := spec["ports"].([]any); ok {
		for _, p := range ports {
			if p, ok := p.(object); ok {
				delete(p, "nodePort")
			}
		}
	}
	if template, ok := spec["template"].(object); ok {
		meta, _ := template["metadata"].(object)
		plain(meta)
		if labels, ok := meta["labels"].(object); ok { // of a Job, made from its uid
			delete(labels, "controller-uid")
			delete(labels, "batch.kubernetes.io/controller-uid")
		}
	}
	if o["kind"] == "Job" {
		delete(spec, "selector")
	}
	if o["kind"] == "Secret" { // its keys are fixed, its values are not
		data, _ := o["data"].(object)
		o["data"] = slices.Sorted(maps.Keys(data))
	}
}

// plain removes annotations that tell of other things than the object's content:
// when something was restarted, digests of random values, what was applied.
func plain(meta object) {
	annotations, _ := meta["annotations"].(object)
	for key := range annotations {
		if strings.Contains(key, "checksum") || strings.Contains(key, "restartedAt") || strings.Contains(key, "last-applied") ||
			strings.Contains(key, "refresh") || strings.Contains(key, "revision") || strings.HasPrefix(key, "control-plane.alpha") {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// health is what an Application's status says of it, without times.
func health(o object) string {
	if o["kind"] != "Application" {
		return ""
	}
	status, _ := o["status"].(object)
	sync, _ := status["sync"].(object)
	health, _ := status["health"].(object)
	return fmt.Sprint(sync["status"], " ", health["status"])
}

// chance are texts that no two installs share: certificates, commits, ids of
// runs, addresses that the cluster gave, times, and the serial of the Terraform
// state, which grows with each of the writes that Terraform did not join.
var chance = []struct { //nolint:gochecknoglobals // constants
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]+-----[^-]*-----END [A-Z ]+-----(\\n)?`), "<pem>"},
	{regexp.MustCompile(`"caBundle":"[^"]*"`), `"caBundle":"<pem>"`},
	{regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-f]{6}\b`), "<run>"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<commit>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b`), "<time>"},
	{regexp.MustCompile(`"modifiedAt":"\d+"`), `"modifiedAt":"<time>"`}, // Helm's
	{regexp.MustCompile(`terraformSerial: \d+`), "terraformSerial: <serial>"},
}

func withoutChance(s string) string {
	for _, c := range chance {
		s = c.what.ReplaceAllString(s, c.by)
	}
	return s
}

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
