package argo

import (
	"fmt"
	"slices"
	"strings"
)

// maxCause is how many characters of a message go into a cause.
const maxCause = 400

// Explain tells in one sentence why a is not Synced and Healthy. pods is what
// its pods say, empty when they say nothing; it is the most concrete cause there
// can be, unless Argo CD could not even read the desired state.
func (a Application) Explain(pods string) string {
	if c := a.condition(func(t string) bool { return strings.HasSuffix(t, "Error") && t != "SyncError" }); c != "" {
		return c
	}
	if pods != "" {
		return clean(pods)
	}
	for _, r := range a.Operation.Failed {
		return fmt.Sprintf("%s %s was not applied: %s", r.Kind, r.Name, orElse(clean(r.Message), "no message"))
	}
	if a.GivenUp() {
		return fmt.Sprintf("sync %s: %s", strings.ToLower(a.Operation.Phase), orElse(clean(a.Operation.Message), "no message"))
	}
	for _, health := range []string{"Degraded", "Missing", "Suspended", "Unknown", "Progressing"} {
		for _, r := range a.Resources {
			if r.Health == health {
				return fmt.Sprintf("%s %s is %s%s", r.Kind, r.Name, r.Health, colon(clean(r.Message)))
			}
		}
	}
	for _, r := range a.Operation.Running {
		return fmt.Sprintf("hook %s %s has not finished%s", r.Kind, r.Name, colon(clean(r.Message)))
	}
	if c := a.condition(func(t string) bool { return t == "SyncError" }); c != "" {
		return c
	}
	if a.Operation.Phase == "Running" && a.Operation.Message != "" {
		return clean(a.Operation.Message)
	}
	for _, r := range a.Resources {
		if r.Status == "OutOfSync" {
			return fmt.Sprintf("%s %s differs from the branch", r.Kind, r.Name)
		}
	}
	if a.HealthText != "" {
		return clean(a.HealthText)
	}
	return fmt.Sprintf("sync %s, health %s", orElse(a.Sync, "not known"), orElse(a.Health, "not known"))
}

// Failed tells whether something about a went wrong, rather than is slow.
func (a Application) Failed() bool {
	return a.GivenUp() || len(a.Operation.Failed) > 0 || a.Health == "Degraded" ||
		slices.ContainsFunc(a.Conditions, func(c Condition) bool { return strings.HasSuffix(c.Type, "Error") })
}

// Workloads are the objects of a whose pods may tell why it is not Healthy:
// those that are not Healthy themselves and hooks that run or failed.
func (a Application) Workloads() []Resource {
	var out []Resource
	add := func(r Resource) {
		switch r.Kind {
		case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod":
			if r.Namespace == "" {
				r.Namespace = a.Destination
			}
			if !slices.ContainsFunc(out, func(o Resource) bool {
				return o.Kind == r.Kind && o.Namespace == r.Namespace && o.Name == r.Name
			}) {
				out = append(out, r)
			}
		}
	}
	for _, r := range slices.Concat(a.Operation.Failed, a.Operation.Running) {
		add(Resource{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	}
	for _, r := range a.Resources {
		if r.Health != "Healthy" {
			add(r)
		}
	}
	return out
}

// Children are the names of the Applications among a's resources, as "name".
func (a Application) Children() []string {
	var out []string
	for _, r := range a.Resources {
		if r.Group == Applications().Group && r.Kind == "Application" {
			out = append(out, r.Name)
		}
	}
	slices.Sort(out)
	return out
}

func (a Application) condition(match func(string) bool) string {
	for _, c := range a.Conditions {
		if match(c.Type) {
			return clean(c.Message)
		}
	}
	return ""
}

// clean makes one short line of a message and drops the frame that remote calls
// put around it.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.LastIndex(s, "desc = "); i >= 0 {
		s = s[i+len("desc = "):]
	}
	if r := []rune(s); len(r) > maxCause {
		s = string(r[:maxCause]) + "…"
	}
	return s
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
