package infrastructure

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// checker makes objects that verify something by using it, in a namespace that
// stays, and removes them.
type checker struct {
	client  *kube.Client
	env     *step.Env
	name    string // "storage"
	account []byte // docker config.json with which its pods pull; nil: they have none
}

// namespace is where a deployment's checks are.
func (k checker) namespace() string { return "slipway-checks-" + k.env.Deployment }

// begin makes the namespace and removes what a run that was killed left.
func (k checker) begin(ctx context.Context) error {
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": k.namespace()},
	}}
	ns.SetLabels(kube.Labels(k.env.Deployment))
	if _, err := k.client.Apply(ctx, []*unstructured.Unstructured{ns}, kube.ApplyOptions{Force: true}); err != nil {
		return err
	}
	for _, gvr := range checkResources() {
		if _, err := k.client.DeleteAll(ctx, gvr, k.namespace(), k.selector()); err != nil {
			return fmt.Errorf("remove what an earlier check left: %w", err)
		}
	}
	if err := k.client.WaitDefaultAccount(ctx, k.namespace()); err != nil || k.account == nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: k.meta(pullSecret), Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: k.account},
	}
	return k.create(ctx, "the Secret with the registry's account", func(ctx context.Context) error {
		_, err := k.client.Kubernetes.CoreV1().Secrets(k.namespace()).Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
}

// pullSecret is the name, within a check, of the Secret with which its pods pull.
const pullSecret = "registry"

// end is removeObjects after a check, also after ctx has been cancelled.
func (k checker) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	k.removeObjects(ctx)
}

// removeObjects removes the check's objects. What is left then goes with the platform,
// so that a failure is only logged.
func (k checker) removeObjects(ctx context.Context) {
	for _, gvr := range checkResources() {
		list, err := k.client.List(ctx, gvr, k.namespace(), k.selector())
		for _, o := range list {
			if err == nil {
				err = k.client.Delete(ctx, gvr, k.namespace(), o.GetName(), metav1.DeletePropagationBackground)
			}
		}
		if err != nil {
			k.env.Logger.Warn("remove the objects of a check", "check", k.name, "resource", gvr.Resource, "error", err)
		}
	}
}

func (k checker) selector() string { return checkLabel + "=" + k.name }

// checkResources are the kinds that checks make, users before what they use.
func checkResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "persistentvolumeclaims"},
		{Version: "v1", Resource: "secrets"},
	}
}

func (k checker) labels() map[string]string {
	l := kube.Labels(k.env.Deployment)
	l[checkLabel] = k.name
	return l
}

func (k checker) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: k.name + "-" + name, Namespace: k.namespace(), Labels: k.labels()}
}

// pod runs a shell command in a pod that has the claim at /data, waits until it
// has succeeded and returns what it wrote.
func (k checker) pod(ctx context.Context, name, image, claim, command string) (string, error) {
	pod := &corev1.Pod{ObjectMeta: k.meta(name), Spec: k.podSpec(name, image, command, "data", corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: k.name + "-" + claim},
	})}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	err := k.create(ctx, "pod "+pod.Name, func(ctx context.Context) error {
		_, err := k.client.Kubernetes.CoreV1().Pods(k.namespace()).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	if err := k.client.WaitPodDone(ctx, k.namespace(), pod.Name); err != nil {
		return "", err
	}
	return k.client.Logs(ctx, k.namespace(), pod.Name, kube.LogOptions{})
}

// create calls f, which creates an object that this check has not made before.
func (k checker) create(ctx context.Context, what string, f func(ctx context.Context) error) error {
	return k.client.Retry(ctx, "create "+what, func(ctx context.Context) error {
		err := f(ctx)
		if apierrors.IsAlreadyExists(err) {
			return nil // the answer to the first attempt was lost
		}
		return err
	})
}

// podSpec is that of a pod that runs a shell command, with volume at /<mount>.
func (k checker) podSpec(name, image, command, mount string, volume corev1.VolumeSource) corev1.PodSpec {
	var secrets []corev1.LocalObjectReference
	if k.account != nil {
		secrets = append(secrets, corev1.LocalObjectReference{Name: k.meta(pullSecret).Name})
	}
	return corev1.PodSpec{
		ImagePullSecrets:              secrets,
		TerminationGracePeriodSeconds: new(int64(0)),
		AutomountServiceAccountToken:  new(false),
		Containers: []corev1.Container{{
			Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command:      []string{"/bin/sh", "-c", command},
			VolumeMounts: []corev1.VolumeMount{{Name: mount, MountPath: "/" + mount}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Mi")},
			},
		}},
		Volumes: []corev1.Volume{{Name: mount, VolumeSource: volume}},
	}
}
