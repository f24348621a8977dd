package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
)

// NoteType is the type of the Secrets in SystemNamespace in which Slipway keeps something in the
// cluster. They are no ConfigMaps, because a removal deletes what they list: whoever may write to
// Secrets there has the platform's rights anyway.
const NoteType corev1.SecretType = "slipway.sh/note"

// Notes returns the data of the note of that name; nil if it does not exist, or is not the
// deployment's: what another deployment's note says of objects, or of how they are removed, is about
// others. An empty deployment is any.
func (c *Client) Notes(ctx context.Context, deployment, name string) (map[string]string, error) {
	o, err := c.Secret(ctx, SystemNamespace, name)
	if err != nil || o == nil || deployment != "" && DeploymentOf(o.Labels) != deployment {
		return nil, err
	}
	out := make(map[string]string, len(o.Data))
	for key, value := range o.Data {
		out[key] = string(value)
	}
	return out, nil
}

// Note decodes into out what KeepNote has written; found is false where Notes has nothing.
func (c *Client) Note(ctx context.Context, deployment, name, key string, out any) (found bool, err error) {
	data, err := c.Notes(ctx, deployment, name)
	if err != nil || data == nil {
		return false, err
	}
	if err := json.Unmarshal([]byte(data[key]), out); err != nil {
		return false, fmt.Errorf("read %s of secret %s/%s: %w", key, SystemNamespace, name, err)
	}
	return true, nil
}

// KeepNote is KeepNotes of a value as JSON, under a key.
func (c *Client) KeepNote(ctx context.Context, deployment, name, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s of secret %s/%s: %w", key, SystemNamespace, name, err)
	}
	return c.KeepNotes(ctx, deployment, name, map[string]string{key: string(text)})
}

// KeepNotes writes all data of that note, as one of the deployment's. For a plan it
// fails if that would change anything.
func (c *Client) KeepNotes(ctx context.Context, deployment, name string, data map[string]string) error {
	values := make(map[string]any, len(data))
	for key, value := range data {
		values[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return c.keep(ctx, deployment, name, map[string]any{"kind": "Secret", "type": string(NoteType), "data": values})
}

// keep applies an object of SystemNamespace.
func (c *Client) keep(ctx context.Context, deployment, name string, object map[string]any) error {
	o := &unstructured.Unstructured{Object: object}
	o.SetAPIVersion("v1")
	o.SetName(name)
	o.SetNamespace(SystemNamespace)
	o.SetLabels(Labels(deployment))
	_, err := c.Apply(ctx, []*unstructured.Unstructured{o}, ApplyOptions{})
	return err
}

// StatusConfigMap, in SystemNamespace, holds the state of the last install: state,
// message, run and since (RFC 3339).
const StatusConfigMap = "slipway-status"

// ReadProgress returns the state of the last install; empty if the cluster shows none.
func (c *Client) ReadProgress(ctx context.Context) (contract.Progress, error) {
	o, err := Retry(ctx, c, "read configmap "+SystemNamespace+"/"+StatusConfigMap, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return c.Kubernetes.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, StatusConfigMap, metav1.GetOptions{})
	})
	if err != nil {
		return "", IgnoreNotFound(err)
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
	system, _ := c.Namespace(ctx, SystemNamespace) // the write below fails for the same reason
	if system != nil && !Ours(system, deployment) {
		log.Warn("the cluster does not show how far the install is: it has another deployment", "state", s)
		return
	}
	err := c.keep(ctx, deployment, StatusConfigMap, map[string]any{"kind": "ConfigMap", "data": map[string]any{
		"state": string(s), "message": message, "run": run, "since": time.Now().UTC().Format(time.RFC3339),
	}})
	if err != nil {
		log.Warn("the cluster does not show how far the install is", "state", s, "error", err)
	}
}
