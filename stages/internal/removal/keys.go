package removal

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Keys removes the keys and labels that Slipway wrote into these Secrets of a release, which has
// them no more. What somebody needs stays as PrunePrerequisites has it, and so does a key that somebody
// else has set since. A Secret of which nothing would be left is deleted.
//
// It returns what it removed, and what stays: "Secret namespace/name, key a: why".
func (r *Remover) Keys(ctx context.Context, secrets []platform.Secret, leftOut []string) (removed, kept []string, err error) {
	u := &prerequisitePruning{Remover: r, uses: map[string]use{}}
	for _, w := range secrets {
		gone, stays, err := u.keys(ctx, w, leftOut)
		removed, kept = append(removed, gone...), append(kept, stays...)
		if err != nil {
			return removed, kept, err
		}
	}
	return removed, kept, nil
}

// keys removes those of one Secret.
func (u *prerequisitePruning) keys(ctx context.Context, w platform.Secret, leftOut []string) (removed, kept []string, err error) {
	m := kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: w.Namespace, Name: w.Name}
	for {
		removed, kept = nil, nil
		o, err := u.Client.Secret(ctx, w.Namespace, w.Name)
		if err != nil || o == nil || kube.DeploymentOf(o.Labels) != u.Deployment || !kube.WroteTo(o) {
			return nil, nil, err
		}
		for _, key := range kube.Written(o, "data") {
			if _, there := o.Data[key]; !there || slices.ContainsFunc(w.Keys, func(k platform.SecretKey) bool { return k.Key == key }) {
				continue
			}
			name := m.String() + ", key " + key
			why, err := u.keyNeeded(ctx, m, key, leftOut)
			if err != nil {
				return nil, nil, err
			}
			if why != "" {
				kept = append(kept, name+": "+why)
				continue
			}
			delete(o.Data, key)
			removed = append(removed, name)
		}
		for _, key := range kube.Written(o, "metadata", "labels") {
			_, there := o.Labels[key]
			_, ours := kube.Labels(u.Deployment)[key]
			if _, declared := w.Labels[key]; there && !ours && !declared && len(leftOut) == 0 {
				delete(o.Labels, key)
				removed = append(removed, m.String()+", label "+key)
			}
		}
		switch {
		case len(removed) == 0:
			return nil, kept, nil
		case len(o.Data) == 0:
			_, err := u.Client.DeleteOurs(ctx, m, u.Deployment, metav1.DeletePropagationBackground)
			return []string{m.String()}, nil, err
		}
		err = u.Client.Retry(ctx, "remove keys of "+m.String(), func(ctx context.Context) error {
			_, err := u.Client.Kubernetes.CoreV1().Secrets(w.Namespace).Update(ctx, o, metav1.UpdateOptions{FieldManager: kube.FieldManager})
			return err
		})
		if !apierrors.IsConflict(err) || ctx.Err() != nil { // else somebody wrote to it in between
			return removed, kept, err
		}
	}
}

// keyNeeded is why a key of a Secret stays; empty if nobody needs it.
func (u *prerequisitePruning) keyNeeded(ctx context.Context, m kube.Member, key string, leftOut []string) (string, error) {
	if len(leftOut) > 0 {
		return "this run has left out " + strings.Join(leftOut, ", "), nil
	}
	in, err := u.usesIn(ctx, m.Namespace)
	switch reader := in.keys[m.Name+"/"+key]; {
	case err != nil:
		return "", err
	case reader != "":
		return reader + " reads it", nil
	case len(in.idle) > 0:
		return noPodHas(in.idle[0]), nil
	}
	return "", nil
}
