package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timed is what of an object says when it was made, and since when it is ready or done. The
// times are those of the cluster, in whole seconds.
type timed struct {
	Kind     string
	Metadata struct {
		Name, Namespace   string
		CreationTimestamp time.Time
		Labels            map[string]string
	}
	Spec struct {
		Selector json.RawMessage // a Service's has another form
	}
	Status struct {
		CompletionTime time.Time
		Conditions     []struct {
			Type, Status       string
			LastTransitionTime time.Time
		}
	}
}

func (o timed) String() string { return o.Kind + " " + o.Metadata.Name }

// since is when a condition of the object became true; zero if it is not.
func (o timed) since(condition string) time.Time {
	for _, c := range o.Status.Conditions {
		if c.Type == condition && c.Status == "True" {
			return c.LastTransitionTime
		}
	}
	return time.Time{}
}

// ready is since when all pods with these labels are ready, of which there is at least one.
func ready(t *testing.T, objects []timed, labels map[string]string) (last time.Time) {
	t.Helper()
	require.NotEmpty(t, labels)
	for _, o := range objects {
		matches := o.Kind == "Pod"
		for label, value := range labels {
			matches = matches && o.Metadata.Labels[label] == value
		}
		if !matches {
			continue
		}
		since := o.since("Ready")
		require.False(t, since.IsZero(), "%s is not ready", o)
		if since.After(last) {
			last = since
		}
	}
	require.False(t, last.IsZero(), "there is no pod of %v", labels)
	return last
}

// requireWaited asserts, by the cluster's own times, that each Job of the platform of
// manifests was made after what it uses was ready, and what uses its result after it was done.
func (k *kept) requireWaited(t *testing.T) {
	t.Helper()
	var list struct{ Items []timed }
	k.objects(t, "pods,jobs.batch,deployments.apps,statefulsets.apps", &list)
	find := func(kind, name string) timed {
		t.Helper()
		at := slices.IndexFunc(list.Items, func(o timed) bool { return o.Kind == kind && o.Metadata.Name == name })
		require.GreaterOrEqual(t, at, 0, "%s %s", kind, name)
		return list.Items[at]
	}
	done := func(job string) time.Time {
		t.Helper()
		when := find("Job", job).Status.CompletionTime
		require.False(t, when.IsZero(), "Job %s has not completed", job)
		return when
	}
	of := func(app string) map[string]string { return map[string]string{"app.kubernetes.io/name": app} }
	for _, c := range []struct {
		what timed
		need string
		when time.Time
	}{
		{find("Job", "databases"), "postgres", ready(t, list.Items, of("postgres"))},
		{find("Job", "migrate"), "databases", done("databases")},
		{find("Deployment", "dex"), "databases", done("databases")},
		{find("Job", "create-admin"), "dex", ready(t, list.Items, of("dex"))},
		{find("Deployment", "console"), "create-admin", done("create-admin")},
		{find("Deployment", "console"), "migrate", done("migrate")},
	} {
		made := c.what.Metadata.CreationTimestamp
		require.False(t, made.Before(c.when), "%s was made at %s, %s was ready at %s", c.what, made, c.need, c.when)
	}
}

// wavesWait: the Application of a later wave was made after each object of the wave before
// it was healthy, by the cluster's own times.
func wavesWait(t *testing.T, kubectl onCluster) {
	type application struct {
		timed
		Status struct {
			Resources []struct{ Group, Kind, Namespace, Name string }
			Health    struct{ Status string }
		}
	}
	app := func(name string) (a application) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(kubectl(t, "get", "application", "-n", "argocd", name, "-o", "json")), &a))
		require.Equal(t, "Healthy", a.Status.Health.Status, name)
		return a
	}
	for _, wave := range []struct {
		app, namespace, next string
		holds                []string // among what it brings
	}{
		{"base", "platform", "database", []string{"PriorityClass", "ResourceQuota"}},
		{"database", "database", "guestbook", []string{"StatefulSet", "Job", "Service"}},
	} {
		next := app(wave.next).Metadata.CreationTimestamp
		var names []string
		kinds := map[string]bool{}
		for _, r := range app(wave.app).Status.Resources {
			names = append(names, strings.TrimSuffix(r.Kind+"."+r.Group, ".")+"/"+r.Name)
			kinds[r.Kind] = true
		}
		require.Subset(t, slices.Collect(maps.Keys(kinds)), wave.holds, wave.app)
		var brought, pods struct{ Items []timed }
		inNamespace := []string{"get", "-n", wave.namespace, "-o", "json"}
		require.NoError(t, json.Unmarshal([]byte(kubectl(t, append(inNamespace, names...)...)), &brought))
		require.NoError(t, json.Unmarshal([]byte(kubectl(t, append(inNamespace, "pods")...)), &pods))
		require.Len(t, brought.Items, len(names))
		for _, o := range brought.Items {
			healthy := o.Metadata.CreationTimestamp // what has no health is well from then on
			switch o.Kind {
			case "Job":
				healthy = o.since("Complete")
				require.False(t, healthy.IsZero(), "%s has not completed", o)
			case "Deployment", "StatefulSet", "DaemonSet":
				var selector struct{ MatchLabels map[string]string }
				require.NoError(t, json.Unmarshal(o.Spec.Selector, &selector))
				healthy = ready(t, pods.Items, selector.MatchLabels)
			}
			require.False(t, next.Before(healthy), "%s was made at %s, %s of %s was healthy at %s", wave.next, next, o, wave.app, healthy)
		}
	}
	require.Empty(t, strings.TrimSpace(kubectl(t, "get", "application", "-n", "argocd", "toolbox", "--ignore-not-found", "-o", "name")), "an app that is off is absent")
}
