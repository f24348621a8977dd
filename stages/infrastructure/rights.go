package infrastructure

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const reviewsAtOnce = 8

// right is what may be done with the objects of a kind in all namespaces.
type right struct {
	group, resource string // "pods/log" for a subresource
	verbs           []string
}

// name is "deployments.apps", as kubectl auth can-i takes it.
func (r right) name() string { return strings.TrimSuffix(r.resource+"."+r.group, ".") }

var read = []string{"get", "list", "watch"} //nolint:gochecknoglobals // a constant table

// write is what is done with the objects that a platform is made of.
func write() []string { return append(slices.Clone(read), "create", "update", "patch", "delete") }

// usual are the resources, by group, that whoever installs a platform has to be able to write.
var usual = map[string][]string{ //nolint:gochecknoglobals // a constant table
	"":                          {"namespaces", "secrets", "configmaps", "services", "serviceaccounts", "pods", "persistentvolumeclaims"},
	"apps":                      {"deployments", "statefulsets", "daemonsets"},
	"batch":                     {"jobs"},
	"networking.k8s.io":         {"networkpolicies"},
	"apiextensions.k8s.io":      {"customresourcedefinitions"},
	"rbac.authorization.k8s.io": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
}

// rights are what a platform requires; by listing everything a destroy finds the deployment's objects.
func rights(in contract.ClusterPreflightInput) []right {
	out := []right{
		{group: "*", resource: "*", verbs: []string{"list"}},
		{resource: "nodes", verbs: read}, {resource: "events", verbs: read},
		{resource: "pods/log", verbs: []string{"get"}},
		{group: "discovery.k8s.io", resource: "endpointslices", verbs: []string{"list"}},
		{group: "storage.k8s.io", resource: "storageclasses", verbs: read},
		{resource: "persistentvolumes", verbs: []string{"get", "list", "patch", "delete"}},
	}
	if in.Label {
		out = append(out, right{resource: "nodes", verbs: []string{"patch"}})
	}
	if in.Proxy {
		out = append(out, right{resource: "services/proxy", verbs: []string{"get"}})
	}
	if in.Exec {
		out = append(out, right{resource: "pods/exec", verbs: []string{"get", "create"}})
	}
	for group, resources := range usual {
		for _, resource := range resources {
			out = append(out, right{group: group, resource: resource, verbs: write()})
		}
	}
	return out
}

// checkRights names each right that the credentials lack. A platform that hands on all
// rights needs all of them, for only who has a right may do that.
func checkRights(ctx context.Context, c *kube.Client, in contract.ClusterPreflightInput) ([]problem, error) {
	all, err := mayAll(ctx, c)
	if err != nil || all {
		return nil, err
	}
	out, err := missing(ctx, c, rights(in))
	if in.Admin {
		out = append([]problem{{"the credentials may not do everything (verb *, resource *), which the platform's GitOps engine may and who installs it must",
			"bind their user to the ClusterRole cluster-admin"}}, out...)
	}
	return out, err
}

// checkKinds names each right that the credentials lack over the other kinds of objects that
// the platform is made of. One that it defines itself is not served yet.
func checkKinds(ctx context.Context, c *kube.Client, members []kube.Member) ([]problem, error) {
	all, err := mayAll(ctx, c)
	if err != nil || all {
		return nil, err
	}
	var over []right
	seen := map[schema.GroupVersionKind]bool{}
	for _, m := range members {
		gvk := m.Kind
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		resource, err := c.ResourceOf(ctx, gvk)
		if meta.IsNoMatchError(err) || slices.Contains(usual[gvk.Group], resource) {
			continue
		}
		if err != nil {
			return nil, err
		}
		over = append(over, right{group: gvk.Group, resource: resource, verbs: write()})
	}
	return missing(ctx, c, over)
}

func mayAll(ctx context.Context, c *kube.Client) (bool, error) {
	missing, err := lacks(ctx, c, right{group: "*", resource: "*", verbs: []string{"*"}})
	return len(missing) == 0, err
}

func missing(ctx context.Context, c *kube.Client, all []right) ([]problem, error) {
	slices.SortFunc(all, func(a, b right) int { return strings.Compare(a.name(), b.name()) })
	verbs := make([][]string, len(all))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, r := range all {
		group.Go(func() (err error) {
			verbs[i], err = lacks(asking, c, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []problem
	for i, r := range all {
		if len(verbs[i]) > 0 {
			out = append(out, problem{"the credentials may not " + strings.Join(verbs[i], ", ") + " " + r.name(),
				"allow it in all namespaces"})
		}
	}
	return out, nil
}

// lacks are the verbs of r that the API server would refuse.
func lacks(ctx context.Context, c *kube.Client, r right) ([]string, error) {
	var out []string
	resource, part, _ := strings.Cut(r.resource, "/")
	for _, verb := range r.verbs {
		review := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authv1.ResourceAttributes{Verb: verb, Group: r.group, Resource: resource, Subresource: part},
		}}
		answer, err := kube.Retry(ctx, c, "ask whether one may "+verb+" "+r.name(), func(ctx context.Context) (*authv1.SelfSubjectAccessReview, error) {
			return c.Asking().Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
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
