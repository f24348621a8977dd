package infrastructure

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// askedAtOnce is how many rights the API server is asked about at the same time.
const askedAtOnce = 8

// right is what may be done with the objects of a kind in all namespaces.
type right struct {
	group, resource, subresource string
	verbs                        []string
}

// name is "deployments.apps", as kubectl auth can-i takes it.
func (r right) name() string {
	name := r.resource
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	if r.group != "" {
		name += "." + r.group
	}
	return name
}

// rights are those that a platform needs: also to list everything, by which a destroy finds
// what is the deployment's.
func rights(in contract.ClusterPreflightInput) []right {
	read := []string{"get", "list", "watch"}
	write := append(slices.Clone(read), "create", "update", "patch", "delete")
	out := []right{
		{group: "*", resource: "*", verbs: []string{"list"}},
		{resource: "nodes", verbs: read}, {resource: "events", verbs: read},
		{resource: "pods", subresource: "log", verbs: []string{"get"}},
		{group: "discovery.k8s.io", resource: "endpointslices", verbs: []string{"list"}},
		{group: "storage.k8s.io", resource: "storageclasses", verbs: read},
		{resource: "persistentvolumes", verbs: []string{"get", "list", "patch", "delete"}},
	}
	if in.Label {
		out = append(out, right{resource: "nodes", verbs: []string{"patch"}})
	}
	if in.Proxy {
		out = append(out, right{resource: "services", subresource: "proxy", verbs: []string{"get"}})
	}
	if in.Exec {
		out = append(out, right{resource: "pods", subresource: "exec", verbs: []string{"get", "create"}})
	}
	for group, resources := range map[string][]string{
		"":                          {"namespaces", "secrets", "configmaps", "services", "serviceaccounts", "pods", "persistentvolumeclaims"},
		"apps":                      {"deployments", "statefulsets", "daemonsets"},
		"batch":                     {"jobs"},
		"networking.k8s.io":         {"networkpolicies"},
		"apiextensions.k8s.io":      {"customresourcedefinitions"},
		"rbac.authorization.k8s.io": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
	} {
		for _, resource := range resources {
			out = append(out, right{group: group, resource: resource, verbs: write})
		}
	}
	slices.SortFunc(out, func(a, b right) int { return strings.Compare(a.name(), b.name()) })
	return out
}

// judgeRights names each right that the credentials lack. A platform that hands on all
// rights needs all of them, for only who has a right may do that.
func judgeRights(ctx context.Context, c *kube.Client, in contract.ClusterPreflightInput) ([]problem, error) {
	everything := right{group: "*", resource: "*", verbs: []string{"*"}}
	lacking, err := lacks(ctx, c, everything)
	if err != nil || len(lacking) == 0 {
		return nil, err
	}
	all := rights(in)
	missing := make([][]string, len(all))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i, r := range all {
		group.Go(func() (err error) {
			missing[i], err = lacks(asking, c, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []problem
	if in.Admin {
		out = append(out, problem{"the credentials may not do everything (verb *, resource *), which the platform's GitOps engine may and who installs it must",
			"bind their user to the ClusterRole cluster-admin"})
	}
	for i, r := range all {
		if len(missing[i]) > 0 {
			out = append(out, problem{"the credentials may not " + strings.Join(missing[i], ", ") + " " + r.name(),
				"allow it in all namespaces"})
		}
	}
	return out, nil
}

// lacks are the verbs of r that the API server would refuse.
func lacks(ctx context.Context, c *kube.Client, r right) ([]string, error) {
	var out []string
	for _, verb := range r.verbs {
		review := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authv1.ResourceAttributes{Verb: verb, Group: r.group, Resource: r.resource, Subresource: r.subresource},
		}}
		answer, err := kube.Retry(ctx, c, "ask whether one may "+verb+" "+r.name(), func(ctx context.Context) (*authv1.SelfSubjectAccessReview, error) {
			// A review is a question: nothing is made by it.
			return c.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(dryrun.Allow(ctx), review, metav1.CreateOptions{})
		})
		if err != nil {
			return nil, err
		}
		if !answer.Status.Allowed {
			out = append(out, verb)
		}
	}
	return out, nil
}
