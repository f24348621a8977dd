package infrastructure

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	checkLimit   = 4 * time.Minute // of one check by use
	cleanupLimit = time.Minute
)

var errCheckLate = fmt.Errorf("the %s of the check are up", checkLimit)

const noProvisioner = "kubernetes.io/no-provisioner"

// storage writes a file into a volume of the StorageClass from one pod and reads it back from
// another, unless the class has a volume that waits for a claim: the check's claim might get it.
func storage(ctx context.Context, env *step.Env, in contract.StorageInput) (contract.StorageCheck, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, errCheckLate)
	defer cancel()
	c, err := env.Connect()
	if err != nil {
		return contract.StorageCheck{}, err
	}
	out, err := usableStorage(ctx, c, in)
	if err != nil {
		return out, badStorage(err)
	}
	free, err := freeVolumes(ctx, c, out.Class)
	if err != nil {
		return out, badStorage(err)
	}
	if len(free) > 0 {
		env.Progress("storage class %s is there; nothing is written to it, for that might be to a volume that waits for somebody's claim: %s", out.Class, strings.Join(free, ", "))
		return out, nil
	}
	check := &checker{client: c, env: env, name: "storage"}
	if err := check.begin(ctx); err != nil {
		return out, badStorage(err)
	}
	defer check.end(ctx)
	if err := useStorage(ctx, check, in.Image, out.Class); err != nil {
		return out, badStorage(err)
	}
	env.Progress("a volume of class %s keeps what is written to it", out.Class)
	return out, nil
}

func useStorage(ctx context.Context, check *checker, image, class string) error {
	token := rand.Text()
	err := check.apply(ctx, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: %q, resources: {requests: {storage: 1Mi}}}}", class)
	if err != nil {
		return err
	}
	if _, err := check.pod(ctx, "write", image, "data", "busybox echo "+token+" > /data/probe && busybox sync"); err != nil {
		return fmt.Errorf("write to the volume: %w", err)
	}
	got, err := check.pod(ctx, "read", image, "data", "busybox cat /data/probe")
	if err != nil {
		return fmt.Errorf("read from the volume: %w", err)
	}
	if got = strings.TrimSpace(got); got != token {
		return fmt.Errorf("a second pod read %q from the volume instead of what was written", got)
	}
	claim, err := kube.Retry(ctx, check.client, "read the claim", func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return check.client.Kubernetes.CoreV1().PersistentVolumeClaims(check.namespace()).Get(ctx, check.name+"-data", metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	return releasable(ctx, check.client, claim)
}

// freeVolumes are the volumes of a class that any claim may get, with what is in them.
func freeVolumes(ctx context.Context, c *kube.Client, class string) ([]string, error) {
	list, err := kube.Retry(ctx, c, "list the volumes", func(ctx context.Context) (*corev1.PersistentVolumeList, error) {
		return c.Kubernetes.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, pv := range list.Items {
		if pv.Spec.StorageClassName == class && pv.Spec.ClaimRef == nil {
			out = append(out, pv.Name)
		}
	}
	return out, nil
}

// releasable makes the volume of a check's claim go with it, also where the class retains
// volumes. One that was not made for the claim is left as it is.
func releasable(ctx context.Context, c *kube.Client, claim *corev1.PersistentVolumeClaim) error {
	volume := claim.Spec.VolumeName
	pv, err := kube.Retry(ctx, c, "read the volume "+volume, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return c.Kubernetes.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	if pv.Annotations[kube.ProvisionedBy] == "" || pv.CreationTimestamp.Before(&claim.CreationTimestamp) {
		return fmt.Errorf("the claim got the volume %s, which was not made for it and is left as it is, but for the file probe in it", volume)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	return c.Patch(ctx, "have the volume "+volume+" removed with its claim", corev1.SchemeGroupVersion.WithResource("persistentvolumes"), "", volume, []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`))
}

// usableStorage checks that the StorageClass exists and, in Slipway's cluster, is the default.
func usableStorage(ctx context.Context, c *kube.Client, in contract.StorageInput) (contract.StorageCheck, error) {
	sc, err := kube.Retry(ctx, c, "read the StorageClass "+in.StorageClass, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return c.Dynamic.Resource(storageClasses()).Get(ctx, in.StorageClass, metav1.GetOptions{})
	})
	if err != nil {
		return contract.StorageCheck{}, err
	}
	provisioner, _ := sc.Object["provisioner"].(string)
	switch {
	case !in.Existing && sc.GetAnnotations()[kube.DefaultClass] != "true":
		err = fmt.Errorf("StorageClass %s is not the default", in.StorageClass)
	case provisioner == noProvisioner:
		err = fmt.Errorf("StorageClass %s has only statically provisioned volumes: its provisioner is %s", in.StorageClass, noProvisioner)
	}
	return contract.StorageCheck{Class: in.StorageClass, Provisioner: provisioner}, err
}

func storageClasses() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
}

// verifyStorage tells whether the class is still there, and still the default where it must be.
func verifyStorage(ctx context.Context, env *step.Env, in contract.StorageInput, out contract.StorageCheck) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	now, err := usableStorage(ctx, c, in)
	if err != nil {
		return err
	}
	if now != out {
		return fmt.Errorf("the StorageClass is %s of %s now", now.Class, now.Provisioner)
	}
	return nil
}

func badStorage(err error) error {
	return checkFault(CodeStorage, "use the storage", "check that the storage class works, then run the same command again", err)
}

// checkFault gives err a code of this package, and keeps its class if it has one.
func checkFault(code fault.Code, op, fix string, err error) error {
	return &fault.Fault{Code: code, Class: step.ClassOf(err), Op: op, Fix: fix, Err: err}
}
