package infrastructure

import (
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// checker makes and removes objects that verify something by use, in a namespace that stays.
type checker struct {
	client  *kube.Client
	env     *step.Env
	name    string // "storage"
	account []byte // docker config.json with which its pods pull; nil: they have none
}

func (k *checker) namespace() string { return kube.ChecksNamespace(k.env.Deployment) }

// begin makes the namespace and removes what a run that was killed left.
func (k *checker) begin(ctx context.Context) (err error) {
	if k.account, err = k.env.RegistryAccount(); err != nil {
		return err
	}
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	ns.SetName(k.namespace())
	ns.SetLabels(kube.Labels(k.env.Deployment))
	if _, err := k.client.Apply(ctx, []*unstructured.Unstructured{ns}, kube.ApplyOptions{}); err != nil {
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
	return k.apply(ctx, "{apiVersion: v1, kind: Secret, metadata: {name: %s}, type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: %s}}",
		pullSecret, base64.StdEncoding.EncodeToString(k.account))
}

// pullSecret is the name, within a check, of the Secret with which its pods pull.
const pullSecret = "registry"

// end is removeObjects after a check, also after ctx has been cancelled.
func (k *checker) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	k.removeObjects(ctx)
}

// removeObjects removes the check's objects. It only logs a failure: a destroy removes what is left.
func (k *checker) removeObjects(ctx context.Context) {
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

func (k *checker) selector() string { return checkLabel + "=" + k.name }

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

// apply makes the objects of a manifest, a format, in the check's namespace, with names of the check's.
func (k *checker) apply(ctx context.Context, manifest string, args ...any) error {
	objs, err := kube.Decode(fmt.Appendf(nil, manifest, args...))
	if err != nil {
		return err
	}
	labels := kube.Labels(k.env.Deployment)
	labels[checkLabel] = k.name
	for _, o := range objs {
		o.SetName(k.name + "-" + o.GetName())
		o.SetNamespace(k.namespace())
		o.SetLabels(labels)
	}
	_, err = k.client.Apply(ctx, objs, kube.ApplyOptions{})
	return err
}

// pod runs a shell command in a pod with a claim of the check's at /data and returns its output.
func (k *checker) pod(ctx context.Context, name, image, claim, command string) (string, error) {
	volume := "persistentVolumeClaim: {claimName: " + k.name + "-" + claim + "}"
	if err := k.apply(ctx, "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {restartPolicy: Never, %s}}", name, k.podSpec(image, command, "data", volume)); err != nil {
		return "", err
	}
	name = k.name + "-" + name
	if err := readiness.WaitPodDone(ctx, k.client, k.namespace(), name); err != nil {
		return "", err
	}
	return readiness.Logs(ctx, k.client, k.namespace(), name, corev1.PodLogOptions{})
}

// podSpec are the fields of a pod that runs a shell command, with a volume at /<mount>.
func (k *checker) podSpec(image, command, mount, volume string) string {
	secrets := ""
	if k.account != nil {
		secrets = "{name: " + k.name + "-" + pullSecret + "}"
	}
	return fmt.Sprintf("imagePullSecrets: [%s], terminationGracePeriodSeconds: 0, automountServiceAccountToken: false, volumes: [{name: %s, %s}], "+
		"containers: [{name: main, image: %q, imagePullPolicy: IfNotPresent, command: [/bin/sh, -c, %q], volumeMounts: [{name: %[2]s, mountPath: /%[2]s}], resources: {requests: {memory: 8Mi}}}]",
		secrets, mount, volume, image, command)
}
