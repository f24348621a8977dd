package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
)

// Notes returns the data of a ConfigMap in which Slipway keeps something in the cluster, of
// that name in SystemNamespace; nil if it is not there. What somebody else wrote there is a fault.
func (c *Client) Notes(ctx context.Context, name string) (map[string]string, error) {
	o, err := c.note(ctx, name)
	if err != nil || o == nil {
		return nil, err
	}
	if err := c.genuineNote(ctx, name, o); err != nil {
		return nil, err
	}
	if o.Data == nil {
		return map[string]string{}, nil
	}
	return o.Data, nil
}

// note is the ConfigMap of that name in SystemNamespace, whoever wrote it; nil if it is not
// there.
func (c *Client) note(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	o, err := Retry(ctx, c, "read configmap "+SystemNamespace+"/"+name, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return c.Kubernetes.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, ifThere(err)
	}
	return o, nil
}

// Note decodes into out what KeepNote has written; found is false where it has not.
func (c *Client) Note(ctx context.Context, name, key string, out any) (found bool, err error) {
	data, err := c.Notes(ctx, name)
	if err != nil || data == nil {
		return false, err
	}
	if err := json.Unmarshal([]byte(data[key]), out); err != nil {
		return false, fmt.Errorf("read %s of configmap %s/%s: %w", key, SystemNamespace, name, err)
	}
	return true, nil
}

// KeepNote is KeepNotes of a value as JSON, under a key.
func (c *Client) KeepNote(ctx context.Context, deployment, name, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s of configmap %s/%s: %w", key, SystemNamespace, name, err)
	}
	return c.KeepNotes(ctx, deployment, name, map[string]string{key: string(text)})
}

// KeepNotes writes all data of that ConfigMap, as one of the deployment's. For a plan it
// fails if that would change anything.
func (c *Client) KeepNotes(ctx context.Context, deployment, name string, data map[string]string) error {
	key, err := c.makeKeyOfSeals(ctx, deployment)
	if err != nil {
		return err
	}
	sealed, err := seal(key, name, data)
	if err != nil {
		return err
	}
	values := make(map[string]any, len(data))
	for k, v := range data {
		values[k] = v
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": SystemNamespace},
		"data":     values,
	}}
	o.SetLabels(Labels(deployment))
	o.SetAnnotations(map[string]string{sealAnnotation: sealed})
	_, err = c.Apply(ctx, []*unstructured.Unstructured{o}, ApplyOptions{Force: true})
	return err
}

// StatusConfigMap, in SystemNamespace, holds the state of the last install: state,
// message, run and since (RFC 3339).
const StatusConfigMap = "slipway-status"

// ReadProgress returns the state of the last install; empty if the cluster shows none.
func (c *Client) ReadProgress(ctx context.Context) (contract.Progress, error) {
	o, err := c.note(ctx, StatusConfigMap)
	if err != nil || o == nil {
		return "", err
	}
	return contract.Progress(o.Data["state"]), nil
}

// WriteProgress writes the state of an install into the cluster, unless SystemNamespace is another
// deployment's. That it cannot be written does no harm to the install, and is only logged.
// A plan does not tell of it.
func (c *Client) WriteProgress(ctx context.Context, log *slog.Logger, deployment, run string, s contract.Progress, message string) {
	if c.Plan != nil {
		return
	}
	system, err := Retry(ctx, c, "see whose "+SystemNamespace+" is", func(ctx context.Context) (*corev1.Namespace, error) {
		return c.Kubernetes.CoreV1().Namespaces().Get(ctx, SystemNamespace, metav1.GetOptions{})
	})
	if err == nil && !Ours(system, deployment) {
		log.Warn("the cluster does not show how far the install is: it has another deployment", "state", s)
		return
	}
	err = c.KeepNotes(ctx, deployment, StatusConfigMap, map[string]string{
		"state": string(s), "message": message, "run": run, "since": time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		log.Warn("the cluster does not show how far the install is", "state", s, "error", err)
	}
}
