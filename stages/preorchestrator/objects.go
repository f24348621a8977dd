package preorchestrator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

func runConfigMaps(ctx context.Context, env *step.Env, in contract.ConfigMapsInput) (contract.ConfigMaps, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.ConfigMaps{}, err
	}
	var out contract.ConfigMaps
	for _, m := range r.ConfigMaps {
		name := m.Namespace + "/" + m.Name
		out.Names = append(out.Names, name)
		data, err := platform.FillTexts(m.Data, in.Fill)
		if err != nil {
			return out, fmt.Errorf("make configmap %s: %w", name, err)
		}
		changed, err := writeConfigMap(ctx, c, m.Namespace, m.Name, kube.Labels(env.Deployment), data)
		if err != nil {
			return out, err
		}
		if changed {
			out.Changed++
		}
	}
	env.Progress("%s, %d of them changed", counted(len(out.Names), "configmap"), out.Changed)
	return out, nil
}

// writeSecret makes a Secret hold exactly data; it writes only what differs. It
// is for copies and certificates, not for what is generated once.
func writeSecret(ctx context.Context, c *kube.Client, namespace, name string, kind corev1.SecretType, all map[string]string, data map[string][]byte) error {
	api := c.Kubernetes.CoreV1().Secrets(namespace)
	return c.Retry(ctx, "write secret "+namespace+"/"+name, func(ctx context.Context) error {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = api.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: all}, Type: kind, Data: data,
			}, metav1.CreateOptions{FieldManager: kube.FieldManager})
			return err
		}
		if err == nil {
			err = sameType(o, kind)
		}
		if err != nil || maps.EqualFunc(o.Data, data, bytes.Equal) && holds(o.Labels, all) {
			return err
		}
		o.Data, o.Labels = data, labels.Merge(o.Labels, all)
		_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: kube.FieldManager})
		return err
	})
}

// writeConfigMap makes a ConfigMap hold exactly data; it writes only what differs.
func writeConfigMap(ctx context.Context, c *kube.Client, namespace, name string, all, data map[string]string) (changed bool, err error) {
	api := c.Kubernetes.CoreV1().ConfigMaps(namespace)
	err = c.Retry(ctx, "write configmap "+namespace+"/"+name, func(ctx context.Context) error {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			changed = true
			_, err = api.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: all}, Data: data,
			}, metav1.CreateOptions{FieldManager: kube.FieldManager})
			return err
		}
		if err != nil || maps.Equal(o.Data, data) && holds(o.Labels, all) {
			return err
		}
		changed = true
		o.Data, o.Labels = data, labels.Merge(o.Labels, all)
		_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: kube.FieldManager})
		return err
	})
	return changed, err
}

// holds tells whether have has all of want.
func holds(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// sameType is the fault for a Secret whose type is not the release's: the type of a Secret never changes,
// and a run that is killed before it has made the Secret again would lose generated values.
func sameType(o *corev1.Secret, want corev1.SecretType) error {
	want, have := cmp.Or(want, corev1.SecretTypeOpaque), cmp.Or(o.Type, corev1.SecretTypeOpaque)
	if want == have {
		return nil
	}
	return &fault.Fault{
		Code: CodeSecret, Class: fault.Step, Op: "write secret " + o.Namespace + "/" + o.Name,
		Err: fmt.Errorf("it is of type %q, which never changes, and the release has it as %q", have, want),
		Fix: "name another Secret in platform.yaml, or give it the type that it has; then run the same command again",
	}
}
