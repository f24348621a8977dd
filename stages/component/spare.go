package component

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// spare takes out of Helm's record of the deployed revision what an upgrade to planned
// objects must not delete: with a chart that has an object no more, Helm deletes it, whatever
// it is. The rules are those of kube.ApplySet: what data goes with stays, what another
// component or an Application has now, and what is somebody else's.
func (r *chartRelease) spare(ctx context.Context, deployed *release.Release, planned []*unstructured.Unstructured) error {
	all, err := kube.Decode([]byte(deployed.Manifest))
	if err != nil {
		return badChart(r.name, err)
	}
	before, err := r.members(ctx, all)
	if err != nil {
		return err
	}
	now, err := r.members(ctx, planned)
	if err != nil {
		return err
	}
	dropped := func(m kube.Member) bool { return !slices.ContainsFunc(now, m.Same) }
	if !slices.ContainsFunc(before, dropped) {
		return nil
	}
	others, err := r.others(ctx, slices.DeleteFunc(slices.Clone(before), func(m kube.Member) bool { return !dropped(m) }))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	var spared []string
	for i, o := range all {
		if m := before[i]; dropped(m) {
			stays := m.HasData() || slices.ContainsFunc(others, m.Same)
			if !stays {
				live, err := r.client.Live(ctx, m)
				if err != nil {
					return err
				}
				stays = live != nil && (kube.Keeps(live) || !kube.Ours(live, r.deployment))
				if live != nil && !stays && m.MakesClaims() {
					if err := r.client.MarkClaims(ctx, live, r.deployment); err != nil {
						return err
					}
				}
			}
			if stays {
				spared = append(spared, m.String())
				continue
			}
		}
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", before[i], err)
		}
		fmt.Fprintf(&text, "---\n%s", doc)
	}
	if len(spared) == 0 {
		return nil
	}
	r.log.Info("the chart no longer has these, but they stay", "release", r.name, "objects", spared)
	deployed.Manifest = text.String()
	if err := r.client.Retry(ctx, "note what stays of the Helm release "+r.name, func(context.Context) error { return r.config.Releases.Update(deployed) }); err != nil {
		return badRelease("note what stays of the Helm release "+r.name, err)
	}
	return nil
}

// members are objects of the chart, with the namespaces that they are in.
func (r *chartRelease) members(ctx context.Context, objs []*unstructured.Unstructured) ([]kube.Member, error) {
	placed := make([]*unstructured.Unstructured, len(objs))
	for i, o := range objs {
		placed[i] = o.DeepCopy()
	}
	if err := r.client.Place(ctx, placed, r.namespace); err != nil {
		return nil, err
	}
	out := make([]kube.Member, len(placed))
	for i, o := range placed {
		out[i] = kube.MemberOf(o)
	}
	return out, nil
}
