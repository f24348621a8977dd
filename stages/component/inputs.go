package component

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// inputsLabel on Helm's record of a revision is a digest of everything that the revision was
// rendered from. A chart that asks for the time, a random number or the revision renders
// differently each time; as long as its inputs are the same, the revision stays as it is.
const inputsLabel = "slipway.sh/inputs"

// inputs are the digest of what a chart is rendered from. Which APIs the cluster has is left
// out: components that come later add to them.
func (i *installer) inputs(ctx context.Context, ch *chart.Chart, values map[string]any) (string, error) {
	cluster, err := kube.Retry(ctx, i.client, "get the version of Kubernetes", func(context.Context) (*version.Info, error) {
		return i.client.Kubernetes.Discovery().ServerVersion()
	})
	if err != nil {
		return "", err
	}
	in := i.in
	in.Fill, in.Values = nil, nil // they are in values
	text, err := json.Marshal([]any{ch.Raw, values, in, cluster.Major, cluster.Minor})
	if err != nil {
		return "", badChart(i.component.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil // a label has 63 characters at most
}

// sameInputs reports whether a revision was rendered from what the chart would be rendered from
// now.
func (r *chartRelease) sameInputs(deployed *release.Release) bool {
	now := r.labels[inputsLabel]
	return now != "" && deployed.Labels[inputsLabel] == now
}

// current are the objects of a revision that has the same inputs, with what the cluster says
// of them now, such as the digest of a Secret, and without Jobs that are done and gone.
func (r *chartRelease) current(ctx context.Context, deployed *release.Release) ([]*unstructured.Unstructured, error) {
	text, err := r.complete(ctx, bytes.NewBufferString(deployed.Manifest))
	if err != nil {
		return nil, badRelease("complete the objects of the chart "+r.name, err)
	}
	all, err := kube.Decode(text.Bytes())
	if err != nil {
		return nil, badChart(r.name, err)
	}
	var out []*unstructured.Unstructured
	for _, o := range all {
		if _, expires, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished"); o.GetKind() == "Job" && expires {
			m := kube.MemberOf(o)
			if m.Namespace == "" {
				m.Namespace = r.namespace
			}
			live, err := r.client.Live(ctx, m)
			if err != nil {
				return nil, err
			}
			if live == nil {
				continue
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// restore restores the objects of the deployed revision, and returns what it did. The
// chart's hooks do not run: nothing is upgraded.
func (r *chartRelease) restore(ctx context.Context, objs []*unstructured.Unstructured) (change string, err error) {
	scaled, err := r.client.Rescale(ctx, objs, r.namespace)
	if err != nil {
		return "", err
	}
	var differ []*unstructured.Unstructured
	for _, o := range objs {
		found, err := r.drift(ctx, []*unstructured.Unstructured{o})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			r.log.Info("an object is not as the release has it", "release", r.name, "object", found[0])
			differ = append(differ, o)
		}
	}
	switch {
	case len(differ) == 0 && len(scaled) > 0:
		r.log.Info("scaled to 1", "release", r.name, "objects", scaled)
		return rescaled, nil
	case len(differ) == 0:
		return unchanged, nil
	}
	_, err = r.client.Apply(ctx, differ, kube.ApplyOptions{Force: true, Namespace: r.namespace})
	return restored, err
}
